from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.explain import Trace
from odradek.broker.explain.events import FileOperation
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire

LOG = "orders-0/00000000000000000000.log"


def operations(trace: Trace) -> list[FileOperation]:
    return [each for each in trace.events if isinstance(each, FileOperation)]


def files_of(broker: Broker) -> Any:
    return broker.log_dir.resources.descriptors.files


async def test_an_append_is_a_write_with_position_and_length(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    await produce(wire, "orders", batch(b"first"))
    trace.install()

    await produce(wire, "orders", batch(b"second"))

    [write] = operations(trace)
    assert (write.operation, write.path) == ("write", LOG)
    assert (write.position, write.length) == (len(batch(b"first")), len(batch(b"second")))
    assert write.cause == trace.requests()[-1].number


async def test_a_new_topic_makes_a_directory_and_files(wire: Wire, trace: Trace) -> None:
    trace.install()

    await create(wire, "orders")

    found = {(each.operation, each.path) for each in operations(trace)}
    assert ("create", LOG) in found
    assert any(operation == "make directory" for operation, _ in found)


async def test_a_deleted_topic_is_renamed(wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    trace.install()

    await wire.ask(DeleteTopicsRequest(topic_names=["orders"], timeout_ms=5000), 4)

    [rename] = [each for each in operations(trace) if each.operation == "rename" and each.path == "orders-0"]
    assert rename.target.startswith("orders-0.")
    assert rename.target.endswith("-delete")


async def test_syncs_are_shown_where_there_are_any(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path / "data")}) as broker, Wire("127.0.0.1", broker.port) as wire:
        trace = Trace(broker)
        await create(wire, "orders", flush_messages="1")
        trace.install()
        await produce(wire, "orders", batch(b"v"))

        assert ("fsync", LOG) in {(each.operation, each.path) for each in operations(trace)}


async def test_of_several_log_directories_the_name_is_shown(tmp_path: Path) -> None:
    directories = f"{tmp_path / 'one'},{tmp_path / 'two'}"
    async with Broker({"log.dirs": directories}) as broker, Wire("127.0.0.1", broker.port) as wire:
        trace = Trace(broker)
        trace.install()
        await create(wire, "orders", partitions=2)

        logs = {each.path for each in operations(trace) if each.operation == "create" and each.path.endswith(".log")}
        assert {path.split("/")[0] for path in logs} == {"one", "two"}


async def test_the_methods_of_the_files_are_back_after_removal(broker: Broker, trace: Trace) -> None:
    trace.install()
    assert "pwrite" in vars(files_of(broker))
    trace.remove()

    assert not vars(files_of(broker))


async def test_another_hook_around_the_same_files_stays(broker: Broker, wire: Wire, trace: Trace) -> None:
    await create(wire, "orders")
    await produce(wire, "orders", batch(b"v"))
    trace.install()
    files = files_of(broker)
    traced, seen = files.pwrite, []

    def hook(descriptor: int, data: bytes, position: int) -> None:
        seen.append(position)
        traced(descriptor, data, position)

    files.pwrite = hook
    trace.remove()
    trace.clear()
    await produce(wire, "orders", batch(b"v"))

    assert seen == [len(batch(b"v"))]
    assert not trace.events


async def test_an_operation_that_fails_is_shown_with_the_reason(broker: Broker, trace: Trace) -> None:
    trace.install()
    files = files_of(broker)

    with pytest.raises(FileNotFoundError):
        files.rename(f"{broker.log_dir.path}/missing", f"{broker.log_dir.path}/target")

    [failed] = operations(trace)
    assert (failed.operation, failed.path, failed.target) == ("rename", "missing", "target")
    assert failed.error == "No such file or directory"

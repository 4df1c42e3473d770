"""A broker that starts, stops and is killed again and again."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import ConfigError
from odradek.broker.startup import temporary_log_dir
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.handlers.requests import batch, create, fetch, fetch_request, parked, produce, produce_request, values_in
from tests.wire import Wire

LARGE = b"x" * 500_000
CLEAN_MARKER = ".kafka_cleanshutdown"
STORE = "odradek-metadata.sqlite"


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of the file system in memory."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(temporary_log_dir, "MEMORY", tmp_path)
    monkeypatch.setattr(temporary_log_dir, "LEAST_MEMORY_BYTES", 0)
    return tmp_path


def directory_of(broker: Broker) -> Path:
    return Path(broker.config.log_dirs[0])


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def is_directory(path: Path) -> bool:
    return path.is_dir()


def contents(directory: Path) -> dict[str, bytes]:
    """The files of the log, without those of SQLite, which has its own journal."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.name.startswith(STORE)
    }


def resources() -> tuple[set[asyncio.Task[object]], set[threading.Thread], list[str]]:
    """Tasks, threads and open files. A reserved port is another socket each time, so that only the number counts."""
    gc.collect()
    links = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    files = [link.partition(":[")[0] for link in links if not link.startswith("/proc/")]
    return asyncio.all_tasks(), set(threading.enumerate()), sorted(files)


def stop(broker: Broker) -> Awaitable[None]:
    return broker.stop()


def kill(broker: Broker) -> Awaitable[None]:
    return broker.kill()


either_end = pytest.mark.parametrize("end", [stop, kill])
End = Callable[[Broker], Awaitable[None]]


@either_end
@pytest.mark.parametrize("has_directory", [False, True])
async def test_the_next_start_has_the_same_ports_data_and_ids(end: End, has_directory: bool, tmp_path: Path) -> None:
    own = {"log.dirs": str(tmp_path)} if has_directory else {}
    listeners = "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"
    other = {"listeners": listeners, "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT"}
    async with Broker({"metrics.port": 0, **other, **own}) as broker:
        ports, metrics_port = broker.ports, broker.metrics_port
        cluster_id = broker.services.metadata.image.cluster_id
        async with Wire("127.0.0.1", broker.port) as wire:
            topic_id = await create(wire, "t")
        for round_ in range(3):
            async with Wire("127.0.0.1", broker.port) as wire:
                await produce(wire, "t", batch(b"%d" % round_))
            await end(broker)
            await broker.start()

        assert (broker.ports, broker.metrics_port) == (ports, metrics_port)
        assert broker.services.metadata.image.cluster_id == cluster_id
        async with Wire("127.0.0.1", broker.port) as wire:
            assert values_in(await fetch(wire, "t")) == [b"0", b"1", b"2"]
            [topic] = (await wire.ask(MetadataRequest(None), 12)).topics
            assert topic.topic_id == topic_id


async def test_a_start_after_a_stop_recovers_nothing_and_after_a_kill_it_recovers() -> None:
    async with Broker() as broker:
        await broker.restart()
        assert broker.log_dir.was_clean
        await broker.kill()
        await broker.start()
        assert not broker.log_dir.was_clean


async def test_a_stop_while_an_exception_is_handled_raises_nothing() -> None:
    def fail() -> None:
        raise ValueError("a failed test")

    try:
        fail()
    except ValueError:
        async with Broker():
            pass


async def test_a_kill_changes_no_file() -> None:
    async with Broker() as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t", 3)
            for index in range(3):
                await produce(wire, "t", batch(LARGE), index)
            before = contents(directory_of(broker))
            await broker.kill()

        assert contents(directory_of(broker)) == before
        assert CLEAN_MARKER not in names_in(directory_of(broker))


async def test_after_a_kill_nothing_is_written() -> None:
    """Appends that wait for a writer thread are dropped, or were finished before the kill returned."""
    async with Broker() as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t")
            for _ in range(20):
                await wire.send(produce_request("t", batch(LARGE)), 9)
            await wire.receive(produce_request("t", batch(LARGE)), 9)
            await broker.kill()
            before = contents(directory_of(broker))
            await broker.start()
        async with Wire("127.0.0.1", broker.port) as wire:
            row = await fetch(wire, "t")
        log = b"".join(content for name, content in before.items() if name.endswith(".log"))
        assert 1 <= row.high_watermark <= 20
        assert row.high_watermark == log.count(LARGE)


async def test_clients_see_a_reset_after_a_kill_and_are_refused() -> None:
    async with Broker() as broker:
        with socket.create_connection(("127.0.0.1", broker.port)) as client:
            async with Wire("127.0.0.1", broker.port) as wire:  # accepted later than the first
                await wire.ask(MetadataRequest([]), 12)
            await broker.kill()

            with pytest.raises(ConnectionResetError):
                client.recv(1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", broker.port)


async def test_a_kill_does_not_answer_a_request_that_waits() -> None:
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await wire.send(fetch_request("t", max_wait_ms=60_000), 12)
        await parked(broker)
        await broker.kill()
        assert await wire.is_closed_by_peer()


@either_end
async def test_an_end_leaves_no_threads_tasks_and_descriptors(end: End, tmp_path: Path) -> None:
    broker = Broker({"log.dirs": str(tmp_path), "metrics.port": 0})
    await broker.start()
    await end(broker)
    before = resources()
    for name in ("a", "b", "c"):
        await broker.start()
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, name, 5)
            await produce(wire, name, batch(LARGE))
            await wire.send(fetch_request(name, 1, max_wait_ms=60_000), 12)
            await parked(broker)
            await end(broker)
        assert resources() == before


@either_end
async def test_the_port_of_a_broker_that_is_down_is_kept_for_it(end: End) -> None:
    async with Broker() as broker:
        await end(broker)
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", broker.port))
        await broker.start()


async def test_a_stopped_or_killed_broker_gives_its_directory_to_another(tmp_path: Path) -> None:
    first, second = (Broker({"log.dirs": str(tmp_path)}) for _ in range(2))
    for end in (stop, kill):
        await first.start()
        await end(first)
        await second.start()
        await second.stop()


async def test_ends_of_a_broker_that_does_not_run_do_nothing_and_a_second_start_is_refused() -> None:
    broker = Broker()
    await broker.stop()
    await broker.kill()
    await broker.start()
    with pytest.raises(RuntimeError, match="is running"):
        await broker.start()
    await broker.stop()
    await broker.kill()
    await broker.close()
    await broker.close()
    with pytest.raises(RuntimeError, match="is closed"):
        await broker.start()


async def test_the_temporary_directory_exists_until_the_broker_is_closed(memory: Path) -> None:
    broker = Broker()
    await broker.start()
    await broker.stop()
    assert is_directory(directory_of(broker))
    await broker.start()
    await broker.close()
    assert names_in(memory) == []


def test_the_temporary_directory_of_a_broker_that_is_garbage_is_removed(memory: Path) -> None:
    broker = Broker()
    assert names_in(memory) == [directory_of(broker).name]
    del broker
    gc.collect()
    assert names_in(memory) == []


@pytest.mark.process
def test_a_process_that_only_stops_its_broker_leaves_no_directory(tmp_path: Path) -> None:
    program = (
        "from odradek.broker.testing.threaded import ThreadedBroker\n"
        "broker = ThreadedBroker(); broker.start(); broker.stop(); never_started = ThreadedBroker()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert names_in(tmp_path) == []


async def test_another_broker_does_not_remove_the_directory_of_a_stopped_one(memory: Path) -> None:
    async with Broker() as broker:
        await broker.stop()
        os.utime(directory_of(broker), (1_600_000_000, 1_600_000_000))
        async with Broker():
            pass
        await broker.start()
        assert broker.log_dir.was_clean


async def test_a_first_start_that_fails_leaves_no_directory_and_may_be_repeated(memory: Path) -> None:
    other = Broker()
    await other.start()
    port = other.port
    for properties in ({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}, {"metrics.port": port}):
        broker = Broker(properties)
        with pytest.raises(OSError, match="cannot"):
            await broker.start()
        assert names_in(memory) == [directory_of(other).name]
    await other.close()

    await broker.start()
    await broker.close()
    assert names_in(memory) == []


async def test_a_later_start_that_fails_keeps_the_data() -> None:
    async with Broker() as broker:
        async with Wire("127.0.0.1", broker.port) as wire:
            await create(wire, "t")
            await produce(wire, "t", batch(b"a"))
        await broker.stop()
        with socket.create_server(("127.0.0.1", broker.port)), pytest.raises(OSError, match="cannot listen"):
            await broker.start()
        await broker.start()
        async with Wire("127.0.0.1", broker.port) as wire:
            assert values_in(await fetch(wire, "t")) == [b"a"]


async def test_properties_may_be_integers_and_booleans(tmp_path: Path) -> None:
    async with Broker({"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        assert broker.config.num_partitions == 3
        assert broker.config.auto_create_topics_enable is False


@pytest.mark.parametrize("value", [1.5, None, b"1", ["a"]])
def test_a_property_of_another_type_is_refused_by_name(value: object, memory: Path) -> None:
    with pytest.raises(ConfigError, match=r"num\.partitions = .*of type"):
        Broker({"num.partitions": value})  # type: ignore[dict-item]
    assert names_in(memory) == []


def test_an_unknown_property_is_refused_with_the_nearest_name(memory: Path) -> None:
    with pytest.raises(ConfigError, match=r"num\.partition \(override\): did you mean num\.partitions"):
        Broker({"num.partition": 3})


async def test_records_far_in_the_future_are_accepted() -> None:
    """As from a client in a test that has set its clock."""
    async with Broker() as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        far = BatchBuilder()
        far.append(4_000_000_000_000, None, b"a")
        assert (await produce(wire, "t", bytes(far.build()))).error_code == ErrorCode.NONE


async def test_what_is_registered_is_called_in_each_start() -> None:
    broker = Broker()
    seen: list[int] = []
    broker.on_start.append(lambda: seen.append(len(broker.routes.by_version)))
    await broker.start()
    await broker.restart()
    await broker.close()
    assert seen == [0, 0]

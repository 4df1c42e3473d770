"""Producer ids in the logs are not allocated again, whatever happened to the metadata."""

from __future__ import annotations

import logging
import shutil
import time
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.store.sqlite import FILE_NAME
from odradek.client import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.handlers.requests import create, fetch, new_producer_id, produce, values_in
from tests.storage.test_golden import HERE
from tests.wire import Wire

FIRST_ADOPTED = 1 << 40


def batch(producer_id: int, value: bytes = b"v", timestamp: int | None = None) -> bytes:
    """The first batch of a producer, written just now."""
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0)
    builder.append(time.time_ns() // 1_000_000 if timestamp is None else timestamp, b"k", value)
    return bytes(builder.build())


async def write(path: Path, *batches: bytes) -> None:
    """Run a broker that allocates a producer id, and append these batches to a topic."""
    async with Broker({"log.dirs": str(path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await new_producer_id(wire)
        if "t" not in broker.services.metadata.image.topics:
            await create(wire, "t")
        for data in batches:
            assert (await produce(wire, "t", data)).error_code == ErrorCode.NONE


async def next_id(path: Path) -> int:
    async with Broker({"log.dirs": str(path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        return await new_producer_id(wire)


def lose_metadata(path: Path) -> None:
    for file in path.glob(f"{FILE_NAME}*"):
        file.unlink()


def copy_metadata(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    lose_metadata(target)
    for file in source.glob(f"{FILE_NAME}*"):
        shutil.copy(file, target)


def leave_clean(path: Path) -> None:
    """A clean stop."""


def leave_unclean(path: Path) -> None:
    """A kill: the logs are recovered."""
    (path / ".kafka_cleanshutdown").unlink()


def leave_without_snapshots(path: Path) -> None:
    """Delete the snapshots, as if only the logs were copied: the ids are in the logs as well."""
    for file in path.glob("*/*.snapshot"):
        file.unlink()


HOW = [leave_clean, leave_unclean, leave_without_snapshots]


async def test_a_new_cluster_counts_from_zero(tmp_path: Path) -> None:
    assert await next_id(tmp_path) == 0


async def test_ids_in_adopted_directories_begin_above_those_of_kafka(tmp_path: Path) -> None:
    golden = Path(shutil.copytree(HERE / "golden_dirs", tmp_path / "logs"))
    assert await next_id(golden) == FIRST_ADOPTED
    assert await next_id(golden) == FIRST_ADOPTED + 1000


async def test_ids_begin_there_too_while_a_directory_is_offline(tmp_path: Path) -> None:
    both = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}
    async with Broker(both) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", partitions=2)
    lose_metadata(tmp_path / "a")
    (tmp_path / "b").rename(tmp_path / "elsewhere")
    (tmp_path / "b").write_text("not a directory")
    async with Broker(both) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert broker.log_dirs.offline
        assert await new_producer_id(wire) == FIRST_ADOPTED


@pytest.mark.parametrize("leave", HOW)
async def test_the_first_records_of_a_new_producer_are_kept_after_the_metadata_were_lost(
    tmp_path: Path, leave: object
) -> None:
    async with Broker({"log.dirs": str(tmp_path)}) as broker, Producer(broker.bootstrap) as producer:
        await (await producer.send("t", b"before"))
    assert callable(leave)
    leave(tmp_path)
    lose_metadata(tmp_path)
    async with Broker({"log.dirs": str(tmp_path)}) as broker:
        async with Producer(broker.bootstrap) as producer:
            assert (await (await producer.send("t", b"after"))).offset == 1
        async with Wire("127.0.0.1", broker.port) as wire:
            assert values_in(await fetch(wire, "t")) == [b"before", b"after"]
    assert await next_id(tmp_path) > FIRST_ADOPTED


@pytest.mark.parametrize("leave", HOW)
async def test_ids_in_the_logs_are_skipped_if_the_metadata_are_an_older_copy(
    tmp_path: Path, leave: object, caplog: pytest.LogCaptureFixture
) -> None:
    logs = tmp_path / "logs"
    await write(logs)
    copy_metadata(logs, tmp_path / "copy")
    await write(logs, batch(4500), batch(4700), batch(1003))
    copy_metadata(tmp_path / "copy", logs)
    assert callable(leave)
    leave(logs)
    caplog.clear()
    assert await next_id(logs) == 5700, "nor one of the same block: its producer may not have written yet"
    [line] = [line for line in caplog.messages if "producer ids in the logs are newer than the metadata" in line]
    assert "highest=4700" in line
    caplog.clear()
    assert await next_id(logs) == 6700
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_the_id_of_a_producer_that_expired_is_skipped(tmp_path: Path) -> None:
    await write(tmp_path, batch(70_000, timestamp=1_700_000_000_000))
    assert await next_id(tmp_path) > 70_000


async def test_the_ids_of_logs_without_a_topic_are_skipped(tmp_path: Path) -> None:
    """A topic may be created for them later."""
    await write(tmp_path / "theirs", batch(8000))
    await write(tmp_path / "ours")
    shutil.copytree(tmp_path / "theirs" / "t-0", tmp_path / "ours" / "stray-0")
    assert await next_id(tmp_path / "ours") > 8000


@pytest.mark.parametrize("known", [2**63 - 1, 2**63 - 1000, 2**62, 2**62 - 1])
async def test_an_id_at_the_end_of_the_range_does_not_exhaust_the_others(tmp_path: Path, known: int) -> None:
    """A client may write any id; that must not exhaust the ids of the cluster."""
    await write(tmp_path, batch(9), batch(known))
    given = {await next_id(tmp_path) for _ in range(3)}
    assert len(given) == 3
    assert not given & {9, known}
    await write(tmp_path, *(batch(each, b"new") for each in sorted(given)))
    async with Broker({"log.dirs": str(tmp_path)}) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"v", b"v", b"new", b"new", b"new"]

"""Rules for the disk against a running broker."""

from __future__ import annotations

import errno
from functools import partial
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.testing.faults import Faults
from odradek.broker.testing.faults.disk_faults import DiskFaults
from odradek.broker.testing.faults.disk_rules import IoError, SlowDisk
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.handlers.requests import batch, create, fetch, fetch_request, produce, values_in
from tests.wire import Wire

NONE = ErrorCode.NONE
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
LOG = "00000000000000000000.log"


async def code(wire: Wire, topic: str = "t", partition: int = 0) -> ErrorCode:
    return ErrorCode((await produce(wire, topic, batch(b"v"), partition)).error_code)


async def test_a_full_disk_takes_what_fits_and_the_broker_is_back_after_a_restart(tmp_path: Path) -> None:
    properties = {"log.dirs": str(tmp_path)}
    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        faults = Faults(broker)
        size = len(batch(b"v"))
        rule = faults.disk_full(after=size + 10, path="*/t-0/*.log")
        assert [await code(wire) for _ in range(3)] == [NONE, STORAGE_ERROR, STORAGE_ERROR]
        assert rule.hits == 1
        assert (tmp_path / "t-0" / LOG).stat().st_size == size + 10
        assert broker.failed.is_set()
        rule.remove()

    async with Broker(properties) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"v"]
        assert (await produce(wire, "t", batch(b"v"))).base_offset == 1


async def test_a_removed_rule_gives_the_space_back(faults: Faults, wire: Wire) -> None:
    await create(wire, "t")
    faults.disk_full(after=0, optional=True).remove()
    assert await code(wire) == NONE


async def test_other_files_have_space(faults: Faults, wire: Wire) -> None:
    await create(wire, "t", partitions=2)
    rule = faults.disk_full(after=0, path="t-1")
    assert await code(wire, partition=0) == NONE
    assert rule.hits == 0
    assert await code(wire, partition=1) == STORAGE_ERROR


async def test_the_nth_write_fails_and_the_log_directory_is_offline(broker: Broker, faults: Faults, wire: Wire) -> None:
    await create(wire, "t")
    rule = faults.io_error("*/t-0/*.log", nth=2)
    assert [await code(wire) for _ in range(3)] == [NONE, STORAGE_ERROR, STORAGE_ERROR]
    assert rule.hits == 1
    error = broker.log_dir.failure.error
    assert error is not None
    assert error.errno == errno.EIO


async def test_a_transient_error_leaves_the_log_directory_online(broker: Broker, faults: Faults, wire: Wire) -> None:
    await create(wire, "t")
    faults.io_error("t-0", error="ENOMEM")
    assert [await code(wire) for _ in range(2)] == [STORAGE_ERROR, NONE]
    assert broker.log_dir.failure.error is None


async def test_a_sync_fails_also_where_syncs_are_skipped(broker: Broker, faults: Faults, wire: Wire) -> None:
    await create(wire, "t", flush_messages="1")
    rule = faults.io_error("*.log", on="sync", nth=2)
    assert [await code(wire) for _ in range(2)] == [NONE, STORAGE_ERROR]
    assert rule.hits == 1


async def test_a_small_read_fails_and_the_log_directory_is_offline(broker: Broker, faults: Faults, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v"))
    faults.io_error(LOG, on="read")
    assert (await fetch(wire, "t")).error_code == STORAGE_ERROR
    assert broker.log_dir.failure.error is not None


async def test_a_large_read_fails_while_it_is_sent_and_the_connection_is_closed(
    broker: Broker, faults: Faults, wire: Wire, other: Wire
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v" * 100_000))
    rule = faults.io_error("t-0", on="read", nth=2)
    assert values_in(await fetch(wire, "t")) == [b"v" * 100_000]
    await wire.send(fetch_request("t"), 12)
    assert len(await wire.reader.read()) < 100_000
    assert rule.hits == 1

    assert values_in(await fetch(other, "t")) == [b"v" * 100_000]
    assert broker.log_dir.failure.error is None
    descriptors = broker.log_dir.resources.descriptors
    with descriptors.pinned(f"{broker.log_dir.path}/t-0/{LOG}"):
        assert descriptors.pin(f"{broker.log_dir.path}/t-0/{LOG}").pins == 2, "nobody else"


async def test_a_slow_disk_does_everything_later(faults: Faults, wire: Wire) -> None:
    await create(wire, "t", flush_messages="1")
    rules = [faults.slow_disk(0.1, on=operation, path="t-0") for operation in ("write", "sync", "read")]
    assert await code(wire) == NONE
    assert values_in(await fetch(wire, "t")) == [b"v"]
    assert all(rule.hits for rule in rules)
    everything = faults.slow_disk(0.1)
    assert await code(wire) == NONE
    assert everything.hits >= 2


async def test_a_slow_read_of_a_large_part_holds_up_no_other_client(faults: Faults, wire: Wire, other: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v" * 100_000))
    rule = faults.slow_disk(3_600_000, on="read", path="t-0")
    await wire.send(fetch_request("t"), 12)
    while not rule.hits:
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == NONE
    assert (await other.ask(ApiVersionsRequest(), 0)).error_code == NONE


def test_a_sync_of_a_directory_counts_once(tmp_path: Path) -> None:
    disk, files = DiskFaults(), OsFiles()
    rule = SlowDisk(0, "sync", None, optional=False)
    disk.rules = (rule,)
    disk.shadow([files])
    files.fsync_directory(str(tmp_path))
    assert rule.hits == 1
    disk.shadow(())


def test_a_later_shadow_of_the_same_method_stays(tmp_path: Path) -> None:
    disk, files = DiskFaults(), OsFiles()
    disk.rules = (IoError("sync", 1, "EIO", None, optional=False),)
    disk.shadow([files])
    inner = files.fsync_directory
    synced: list[str] = []

    def traced(path: str) -> None:
        synced.append(path)
        inner(path)

    vars(files)["fsync_directory"] = traced
    disk.shadow(())
    disk.rules = ()
    files.fsync_directory(str(tmp_path))
    assert synced == [str(tmp_path)]
    assert set(vars(files)) == {"fsync_directory"}


def test_rules_count_once_over_shadows_that_had_to_stay(tmp_path: Path) -> None:
    disk, files = DiskFaults(), OsFiles()
    rule = SlowDisk(0, "sync", None, optional=False)
    disk.rules = (rule,)
    disk.shadow([files])
    vars(files)["fsync_directory"] = partial(files.fsync_directory)
    disk.shadow(())
    disk.shadow([files, files])
    files.fsync_directory(str(tmp_path))
    assert rule.hits == 1


def test_an_earlier_shadow_of_the_same_method_comes_back(tmp_path: Path) -> None:
    disk, files = DiskFaults(), OsFiles()
    synced: list[str] = []
    vars(files)["fsync_directory"] = earlier = synced.append
    disk.shadow([files])
    files.fsync_directory(str(tmp_path))
    disk.shadow(())
    assert synced == [str(tmp_path)]
    assert vars(files) == {"fsync_directory": earlier}


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("t-0", True), ("*.log", True), ("*/t-0/*", True), (LOG, True), ("t", False), ("t-1", False), ("*.index", False)],
)
def test_a_path_is_a_pattern_or_a_partition(pattern: str, fits: bool) -> None:
    assert SlowDisk(0, None, pattern, optional=False).fits(f"/data/t-0/{LOG}") is fits

"""A broker with several log directories, one of which fails: the others continue, and a restart repairs it."""

from __future__ import annotations

import asyncio
import threading
import urllib.request
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.runtime import runtime
from odradek.broker.replication import partitions
from odradek.broker.startup.machine import Machine
from odradek.broker.storage.disk.files import OsFiles, Volume
from odradek.broker.testing.movable_clock import MovableClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import batch, create, produce, values_in
from tests.handlers.requests import fetch as fetch_row
from tests.wire import Wire

FAILURE = OSError(5, "Input/output error")


class FewFiles(OsFiles):
    """A disk on which the next so many new logs cannot be made, for want of memory."""

    def __init__(self) -> None:
        self.failures = 0
        self.unreadable = 0  # how often the log of groups cannot be opened

    def open(self, path: str, *, create: bool = False) -> int:
        if create and self.failures and path.endswith(".timeindex"):
            self.failures -= 1
            raise OSError(12, "Cannot allocate memory")
        if not create and self.unreadable and path.endswith("__consumer_offsets-0/00000000000000000000.log"):
            self.unreadable -= 1
            raise OSError(12, "Cannot allocate memory")
        return super().open(path, create=create)


class SizedFiles(OsFiles):
    """A disk whose directories are in file systems of these sizes, by their names."""

    def __init__(self) -> None:
        self.volumes = {"a": Volume(1000, 250), "b": Volume(2000, 1990)}
        self.error: OSError | None = None

    def volume(self, path: str) -> Volume:
        if self.error is not None:
            raise self.error
        return self.volumes[Path(path).name]


def properties(path: Path) -> dict[str, str]:
    return {"log.dirs": f"{path}/a,{path}/b", "metrics.port": "0"}


async def fetch_code(wire: Wire, partition: int) -> ErrorCode:
    return ErrorCode((await fetch_row(wire, "t", partition=partition)).error_code)


async def scraped(broker: Broker) -> str:
    def scrape() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.metrics_port}/metrics") as response:
            return str(response.read().decode())

    return await asyncio.to_thread(scrape)


async def test_a_failed_directory_affects_only_its_partitions(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", partitions=4)
        for partition in range(4):
            assert (await produce(wire, "t", batch(b"%d" % partition), partition)).error_code == ErrorCode.NONE
        second = broker.log_dirs.directories[1]
        lost = sorted(index for _, index in second.logs)
        kept = sorted(index for _, index in broker.log_dirs.first.logs)
        assert len(lost) == len(kept) == 2
        assert "kafka_log_logmanager_offlinelogdirectorycount 0.0" in await scraped(broker)

        second.failure.fail("testing", FAILURE)
        for partition in lost:
            row = await produce(wire, "t", batch(b"no"), partition)
            assert row.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert await fetch_code(wire, partition) == ErrorCode.KAFKA_STORAGE_ERROR
        for partition in kept:
            assert (await produce(wire, "t", batch(b"more"), partition)).base_offset == 1
            assert await fetch_code(wire, partition) == ErrorCode.NONE
        metrics = await scraped(broker)
        assert "kafka_log_logmanager_offlinelogdirectorycount 1.0" in metrics
        assert f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{tmp_path}/b"}} 1.0' in metrics
        assert f'kafka_log_logmanager_logdirectoryoffline{{logDirectory="{tmp_path}/a"}} 0.0' in metrics
        assert "kafka_server_replicamanager_offlinereplicacount 2.0" in metrics
        await create(wire, "made-now", partitions=3)
        assert {log.directory.parent.name for (name, _), log in broker.log_dirs.logs.items() if name == "made-now"} == {
            "a"
        }
        assert not broker.failed.is_set()

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        for partition in lost:
            row = await fetch_row(wire, "t", partition=partition)
            assert values_in(row) == [b"%d" % partition], "what was acknowledged is found again"
            assert (await produce(wire, "t", batch(b"again"), partition)).base_offset == 1


async def test_the_free_space_of_each_directory_is_a_metric(tmp_path: Path) -> None:
    clock, files = MovableClock(), SizedFiles()

    async def sizes(broker: Broker) -> list[str]:
        return sorted(
            line.removeprefix("odradek_log_directory_").replace(f"{tmp_path}/", "")
            for line in (await scraped(broker)).splitlines()
            if line.startswith("odradek_log_directory_")
        )

    machine = Machine(new_files=lambda: files)
    async with Broker(properties(tmp_path), clock=clock, machine=machine) as broker:
        await clock.advance(seconds=1)
        total = ['size_bytes{logDirectory="a"} 1000.0', 'size_bytes{logDirectory="b"} 2000.0']
        assert await sizes(broker) == [
            'free_bytes{logDirectory="a"} 250.0',
            'free_bytes{logDirectory="b"} 1990.0',
            *total,
        ]
        files.volumes["a"] = Volume(1000, 1)
        await clock.advance(seconds=10)
        after = ['free_bytes{logDirectory="a"} 1.0', 'free_bytes{logDirectory="b"} 1990.0', *total]
        assert await sizes(broker) == after
        files.error = OSError(12, "Cannot allocate memory")
        await clock.advance(seconds=10)
        assert await sizes(broker) == after, "a transient error changes nothing"
        broker.log_dirs.directories[1].failure.fail("testing", FAILURE)
        assert await sizes(broker) == [after[0], total[0]]


async def test_the_free_space_of_a_directory_is_read_while_another_disk_hangs(tmp_path: Path) -> None:
    files, goes_on = SizedFiles(), threading.Event()
    size_of = files.volume

    def hang_or_size_of(path: str) -> Volume:
        if path.endswith("a"):
            goes_on.wait()
        return size_of(path)

    files.volume = hang_or_size_of  # type: ignore[method-assign]
    machine = Machine(new_files=lambda: files)
    async with Broker(properties(tmp_path), machine=machine) as broker:
        try:
            async with asyncio.timeout(20):
                while f'free_bytes{{logDirectory="{tmp_path}/b"}} 1990.0' not in await scraped(broker):
                    pass
        finally:
            goes_on.set()


async def test_a_partition_whose_log_cannot_be_created_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_RETRY_SECONDS", 0.01)
    files = FewFiles()
    machine = Machine(new_files=lambda: files)
    async with (
        Broker({"log.dirs": str(tmp_path)}, machine=machine) as broker,
        Wire("127.0.0.1", broker.port) as wire,
    ):
        files.failures = 3
        await create(wire, "t")
        async with asyncio.timeout(20):
            while (await produce(wire, "t", batch(b"a"))).error_code != ErrorCode.NONE:
                pass
        assert files.failures == 0
        assert not broker.failed.is_set()
        assert broker.log_dir.failure.error is None


async def test_groups_whose_log_cannot_be_created_or_read_are_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(runtime, "_LOAD_RETRY_SECONDS", 0.01)
    files = FewFiles()
    settings = {"log.dirs": str(tmp_path), "offsets.topic.num.partitions": "1"}
    machine = Machine(new_files=lambda: files)
    async with Broker(settings, machine=machine) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        files.failures = 3
        await find_coordinator(wire, "g")
        assert await GroupMember(wire, "g").commit("t", 7) == ErrorCode.NONE
        assert files.failures == 0
    files.unreadable = 3
    async with Broker(settings, machine=machine) as broker, Wire("127.0.0.1", broker.port) as wire:
        await find_coordinator(wire, "g")
        assert await GroupMember(wire, "g").committed("t") == 7
        assert files.unreadable == 0


async def test_flushes_skip_an_offline_directory(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", partitions=2, flush_ms="0")
        for partition in range(2):
            await produce(wire, "t", batch(b"a"), partition)
        (kept,) = broker.log_dirs.first.logs.values()

        broker.log_dirs.directories[1].failure.fail("testing", FAILURE)
        await broker.periodic_tasks.flush_due()  # raises nothing, before the partitions are offline
        assert kept.recovery_point == 1
        for partition in range(2):
            await produce(wire, "t", batch(b"b"), partition)
        await broker.periodic_tasks.flush_due()  # nor afterwards
        assert kept.recovery_point == 2


async def test_logs_of_a_missing_directory_are_not_created_again(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t", partitions=2)
        for partition in range(2):
            await produce(wire, "t", batch(b"kept"), partition)
        (lost,) = (index for _, index in broker.log_dirs.directories[1].logs)
    (tmp_path / "b").rename(tmp_path / "elsewhere")
    (tmp_path / "b").write_text("not a directory")

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert (await produce(wire, "t", batch(b"no"), lost)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        requested = [ListOffsetsTopic("t", [ListOffsetsPartition(lost, timestamp=-1)])]
        (topic,) = (await wire.ask(ListOffsetsRequest(-1, topics=requested), 4)).topics
        assert topic.partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "kafka_server_replicamanager_offlinereplicacount 1.0" in await scraped(broker)
        assert (await produce(wire, "t", batch(b"more"), 1 - lost)).base_offset == 1
    (tmp_path / "b").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "b")

    async with Broker(properties(tmp_path)) as broker, Wire("127.0.0.1", broker.port) as wire:
        assert values_in(await fetch_row(wire, "t", partition=lost)) == [b"kept"]


async def test_a_failure_of_the_first_directory_stops_the_broker(tmp_path: Path) -> None:
    async with Broker(properties(tmp_path)) as broker:
        broker.log_dirs.first.failure.fail("testing", FAILURE)
        await broker.failed.wait()

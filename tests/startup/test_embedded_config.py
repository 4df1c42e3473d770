from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import ConfigError
from odradek.broker.startup import temporary_log_dir
from odradek.broker.startup.temporary_log_dir import remove_abandoned
from odradek.broker.storage.names import LOCK
from odradek.client import BrokerError, Producer
from odradek.protocol.errors import ErrorCode

DESCRIPTORS = Path("/proc/self/fd")
_LONG_AGO = 1_600_000_000


def names_in(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of the file system in memory."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(temporary_log_dir, "MEMORY", tmp_path)
    monkeypatch.setattr(temporary_log_dir, "LEAST_MEMORY_BYTES", 0)
    return tmp_path


def make_abandoned(parent: Path) -> Path:
    directory = parent / "odradek-abandoned"
    directory.mkdir()
    (directory / LOCK).touch()
    os.utime(directory, (_LONG_AGO, _LONG_AGO))
    return directory


async def test_a_temporary_directory_is_in_memory_and_is_removed(memory: Path) -> None:
    async with Broker() as broker:
        assert broker.log_dir.path.parent == memory
        async with Producer(broker.bootstrap) as producer:
            await producer.send("t", b"a")

    assert names_in(memory) == []


async def test_tmpdir_overrides_memory(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    broker = Broker()
    assert Path(broker.config.log_dirs[0]).parent != memory
    await broker.close()


async def test_little_memory_is_left_alone(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary_log_dir, "LEAST_MEMORY_BYTES", 1 << 60)
    async with Broker() as broker:
        assert broker.log_dir.path.parent != memory


async def test_a_temporary_directory_is_never_synced(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    async with Broker({"log.flush.interval.messages": "1"}) as broker, Producer(broker.bootstrap) as producer:
        await producer.send("t", b"a")
    assert synced == []

    async with Broker({"log.dirs": str(memory / "kept")}) as broker, Producer(broker.bootstrap) as producer:
        await producer.send("t", b"a")
    assert synced


async def test_only_a_temporary_broker_has_one_partition_for_groups_and_one_for_transactions(tmp_path: Path) -> None:
    kept, chosen = {"log.dirs": str(tmp_path)}, {"offsets.topic.num.partitions": 7}
    for properties, groups, transactions in (({}, 1, 1), (kept, 50, 50), (chosen, 7, 1)):
        async with Broker(properties) as broker:
            config = broker.config
            assert config.offsets_topic_num_partitions == groups
            assert config.transaction_state_log_num_partitions == transactions


async def test_a_broker_that_fails_to_start_leaves_no_directory(memory: Path) -> None:
    with pytest.raises(ConfigError):
        Broker({"no.such": "property"})
    async with Broker() as other:
        with pytest.raises(OSError, match="in use"):
            await Broker({"listeners": f"PLAINTEXT://127.0.0.1:{other.port}"}).start()

    assert names_in(memory) == []


async def test_brokers_leave_no_threads_and_descriptors(memory: Path) -> None:
    async def cycle() -> None:
        async with Broker() as broker, Producer(broker.bootstrap) as producer:
            await producer.send("t", b"a")

    await cycle()
    threads, descriptors = threading.active_count(), len(names_in(DESCRIPTORS))
    for _ in range(20):
        await cycle()
    assert threading.active_count() <= threads
    assert len(names_in(DESCRIPTORS)) <= descriptors
    assert names_in(memory) == []


def test_the_directory_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    directory = make_abandoned(tmp_path)
    remove_abandoned(tmp_path, time.time())
    assert not directory.exists()


def test_the_directory_of_a_running_broker_stays(tmp_path: Path) -> None:
    directory = make_abandoned(tmp_path)
    with (directory / LOCK).open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned(tmp_path, time.time())
        assert directory.exists()


def test_a_directory_that_is_just_made_stays(tmp_path: Path) -> None:
    directory = make_abandoned(tmp_path)
    os.utime(directory)
    remove_abandoned(tmp_path, time.time())
    assert directory.exists()


async def test_a_producer_may_live_in_the_future_but_no_time_of_numpy_is_refused() -> None:
    """A test that freezes the time of its clients is served; -2^63 is a mistake, and Kafka refuses it by default."""
    async with Broker() as broker, Producer(broker.bootstrap) as producer:
        sent = await producer.send_and_wait("t", b"v", timestamp=253_402_300_800_000)  # of the year 10000
        assert (sent.offset, sent.timestamp) == (0, 253_402_300_800_000)
        with pytest.raises(BrokerError) as caught:
            await producer.send_and_wait("t", b"v", timestamp=-(1 << 63))
    assert caught.value.code is ErrorCode.INVALID_TIMESTAMP

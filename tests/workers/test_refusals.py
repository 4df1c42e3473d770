"""The reasons for which no partition moves; each leaves everything as it was."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.metadata.store.store import KV, Delete, Put, StoreError, read_key
from odradek.broker.metadata.values import Assignment, decode_known, encode
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import FileEntry, OsFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import CLEAN_SHUTDOWN, META_PROPERTIES, WORKERS_PLAN
from odradek.broker.workers.layout import SpreadRefusedError
from odradek.broker.workers.machine import locked_machine
from odradek.broker.workers.plan import read_plan
from tests.handlers.requests import batch, create, produce
from tests.workers.hosts import Host
from tests.workers.test_interruptions import KilledError, KilledFiles

KEYS = Keys()


@pytest.fixture
async def host(tmp_path: Path) -> Host:
    """A machine with one worker, which has stopped, and a topic with three partitions."""
    host = Host(tmp_path / "a", tmp_path / "b")
    async with host.running(1) as running, running.wire(1) as wire:
        await create(wire, "t", 3)
        for index in range(3):
            await produce(wire, "t", batch(b"value"), index)
    return host


def _names(host: Host) -> list[str]:
    """All names but those of locks, and of what SQLite writes beside its file."""
    found = [str(path) for each in host.log_dirs for path in each.rglob("*")]
    return sorted(path for path in found if not path.endswith((".lock", "-wal", "-shm")))


async def _assert_refused(
    host: Host, message: str, workers: int = 3, error: type[Exception] = SpreadRefusedError
) -> None:
    before = _names(host)
    with pytest.raises(error, match=message) as caught:
        await host.spread(workers)
    assert "\n" not in str(caught.value)
    assert _names(host) == before


async def _edit(host: Host, edit: Callable[[SqliteStore], Awaitable[object]]) -> None:
    store = await SqliteStore.open(host.store_path)
    await edit(store)
    await store.close()


def _place_of(host: Host, name: str) -> Path:
    [found] = [path for each in host.log_dirs for path in each.rglob(name)]
    return found


async def test_a_running_broker(host: Host) -> None:
    async with host.running(1):
        with pytest.raises(LogDirRefusedError, match=r"a broker is using the log directory .*/a: stop it first"):
            await host.spread(3)
    assert (await host.spread(3)).moved == 2


async def test_a_running_worker_beside_stopped_ones(host: Host) -> None:
    await host.spread(3)
    files = OsFiles()
    lock = files.lock(f"{host.log_dirs[1]}/worker.2/.lock")
    await _assert_refused(
        host, r"a broker is using the log directory .*/b/worker\.2: stop it first", 1, LogDirRefusedError
    )
    files.close(lock)
    assert (await host.spread(1)).moved == 2


async def test_a_broker_cannot_start_while_partitions_move(host: Host) -> None:
    with locked_machine(host.config(3), OsFiles()), pytest.raises(LogDirRefusedError, match="another broker is using"):
        await Broker(host.config(1)).start()


async def test_an_unclean_stop(host: Host) -> None:
    """The marker, and the record in the store: each is missing for itself."""
    place = _place_of(host, "t-1").parent
    (place / CLEAN_SHUTDOWN).rename(place / "kept")
    await _assert_refused(host, f"{place} was not stopped cleanly: start and stop it first")
    (place / "kept").rename(place / CLEAN_SHUTDOWN)
    key = KEYS.broker_known(1)

    async def forget(store: SqliteStore) -> None:
        kv, _ = await read_key(store, key)
        assert kv is not None
        known = msgspec.structs.replace(decode_known(kv.value), clean_shutdown_epoch=0)
        await store.txn((), (Put(key, encode(known)),))

    await _edit(host, forget)
    await _assert_refused(host, r"worker 0 \(node id 1\) was not stopped cleanly: start and stop it first")
    async with host.running(1):
        pass
    assert (await host.spread(3)).moved == 2


async def test_a_killed_broker(host: Host) -> None:
    broker = Broker(host.config(1))
    await broker.start()
    await broker.kill()
    await _assert_refused(host, "was not stopped cleanly: start and stop it first")


async def test_an_unclean_stop_of_a_worker_that_gets_partitions(host: Host) -> None:
    await host.spread(2)
    (host.log_dirs[0] / "worker.1" / CLEAN_SHUTDOWN).unlink()
    (host.log_dirs[1] / "worker.1" / CLEAN_SHUTDOWN).unlink()
    await _assert_refused(host, r"worker\.1 was not stopped cleanly")


async def test_another_cluster(host: Host) -> None:
    meta = host.log_dirs[1] / META_PROPERTIES
    text = meta.read_text()
    meta.write_text(
        "".join(f"{line}\n" for line in text.splitlines() if "cluster.id" not in line) + "cluster.id=other\n"
    )
    await _assert_refused(host, r"log directory .*/b is of cluster other, the metadata store is of")
    meta.write_text(text)
    other = Host(*host.log_dirs, cluster_id="MkU3OEVBNTcwNTJENDM2Qk")
    await _assert_refused(other, r"the metadata store is of cluster .*, cluster.id is MkU3OEVBNTcwNTJENDM2Qk")


async def test_another_node_id(host: Host) -> None:
    await _assert_refused(
        Host(*host.log_dirs, node_id="2"), r"/a is of node 1, and this configuration has node 2 there"
    )


async def test_a_directory_that_cannot_be_read(host: Host) -> None:
    """The tests may run as root, which is denied nothing: the system call fails instead."""

    class _Unreadable(OsFiles):
        def scan(self, path: str) -> list[FileEntry]:
            if path == str(host.log_dirs[1]):
                raise PermissionError(13, "Permission denied", path)
            return super().scan(path)

    with pytest.raises(SpreadRefusedError, match=r"/b cannot be read: Permission denied"):
        await host.spread(3, _Unreadable())


async def test_a_missing_log_directory(host: Host) -> None:
    host.log_dirs[1].rename(host.log_dirs[1].with_name("unmounted"))
    await _assert_refused(host, r"log directory \S+ of worker 0 \(node id 1\), which it had .* is in none of log.dirs")


@pytest.mark.parametrize("name", ["t-0", "t-2"])
async def test_a_missing_partition(host: Host, name: str) -> None:
    shutil.rmtree(_place_of(host, name))
    await _assert_refused(host, f"{name} is in none of the log directories of worker 0")


async def test_a_partition_in_two_directories(host: Host) -> None:
    place = _place_of(host, "t-2")
    other = next(each for each in host.log_dirs if each != place.parent)
    shutil.copytree(place, other / "t-2")
    await _assert_refused(host, "t-2 is in two log directories, ")
    (other / "worker.1").mkdir()
    (other / "t-2").rename(other / "worker.1" / "t-2")
    (other / "worker.1" / META_PROPERTIES).write_text(
        (other / META_PROPERTIES).read_text().replace("node.id=1", "node.id=1001")
    )
    await _assert_refused(host, r"t-2 is in two log directories, .*worker\.1")


async def test_a_damaged_checkpoint(host: Host) -> None:
    place = _place_of(host, "t-2").parent
    (place / "log-start-offset-checkpoint").write_text("nonsense")
    await _assert_refused(host, "log-start-offset-checkpoint", error=MalformedFileError)


async def test_a_configuration_that_workers_cannot_have(host: Host) -> None:
    wrong = Host(*host.log_dirs, listeners="PLAINTEXT://127.0.0.1:65535")
    await _assert_refused(wrong, "the last of num.workers = 3 workers would need port 65537")


async def test_more_replicas_than_workers(host: Host) -> None:
    await host.spread(2)
    async with host.running(2) as running:
        broker = running.brokers[1]
        topic_id = broker.services.metadata.image.topics["t"].topic_id
        log = broker.log_dirs.logs["t", 0]
        copied = Path(str(log.directory))
    shutil.copytree(copied, copied.parent / "worker.1" / "t-0")

    async def replicate(store: SqliteStore) -> None:
        key = KEYS.assignment(topic_id, 0)
        await store.txn((), (Put(key, encode(Assignment([1, 1001]))),))

    await _edit(host, replicate)
    await _assert_refused(host, "t-0 has 2 replicas on this machine, more than num.workers = 1", 1)
    assert (await host.spread(3)).moved == 1, "only t-2: a partition with several replicas stays"


async def test_a_worker_that_is_registered(host: Host) -> None:
    store = await SqliteStore.open(host.store_path)
    async with Broker(host.config(1), store=store) as broker:
        kv = await broker.services.metadata.read(KEYS.broker_id(1))
    assert isinstance(kv, KV)
    await store.txn((), (Put(kv.key, kv.value),))
    await store.close()
    await _assert_refused(host, r"worker 0 \(node id 1\) is registered in the metadata store: stop it first")


async def test_a_store_without_a_cluster(host: Host) -> None:
    await _edit(host, lambda store: store.txn((), (Delete(KEYS.cluster),)))
    await _assert_refused(host, "the metadata store has no cluster: no broker has run with this configuration")


async def test_an_unreadable_store(host: Host) -> None:
    await _edit(host, lambda store: store.txn((), (Put(KEYS.broker_known(5), b"nonsense"),)))
    await _assert_refused(host, "cannot read the metadata at", error=StoreError)


async def test_an_unfinished_plan_of_other_directories(host: Host) -> None:
    with pytest.raises(KilledError):
        await host.spread(3, KilledFiles(12))
    assert read_plan(OsFiles(), str(host.log_dirs[0])) is not None
    swapped = Host(*reversed(host.log_dirs))
    swapped_store = swapped.log_dirs[0] / host.store_path.name
    shutil.copyfile(host.store_path, swapped_store)
    await _assert_refused(swapped, "was begun with another node.id, or other log.dirs, or in another order")
    swapped_store.unlink()
    assert (await host.spread(3)).finished == 2


async def test_a_damaged_plan(host: Host) -> None:
    (host.log_dirs[0] / WORKERS_PLAN).write_text("{")
    await _assert_refused(host, f"{WORKERS_PLAN} cannot be read", error=MalformedFileError)

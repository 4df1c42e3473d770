"""A move of partitions that is killed at its n-th change, of the disk or of the store, and then repeated.

What was killed before the plan was there has changed nothing; from then on no broker starts until it is finished. The
result is that of a move which nothing interrupted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import worker_properties
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import read_file, write_file
from odradek.broker.metadata.store.store import KV, Cmp, Op, TxnResult
from odradek.broker.randomness import SeededRandomness
from odradek.broker.startup.surroundings import Worker
from odradek.broker.startup.worker_directories import refuse_unfinished
from odradek.broker.storage.disk.files import BytesLike, Files, OsFiles, UnsyncedFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.storage.names import LOCK, WORKERS_PLAN
from odradek.broker.workers.machine import locked_machine
from odradek.broker.workers.spread import Outcome, spread
from tests.handlers.requests import batch, create, produce
from tests.handlers.test_delete_records import deleted
from tests.workers.hosts import Host


class KilledError(BaseException):
    """The process ends here. No `except Exception` may catch it."""


class KilledFiles(OsFiles):
    """Ends the process at its n-th change of the disk, or half-way in a write or a removal. Syncs nothing."""

    def __init__(self, last: int) -> None:
        self.left = last

    @contextmanager
    def _change(self) -> Iterator[bool]:
        """Yield whether the process survives the change, and end it otherwise."""
        self.left -= 1
        yield self.left > 0
        if self.left <= 0:
            raise KilledError

    def open(self, path: str, *, create: bool = False) -> int:
        if not create:
            return super().open(path)
        with self._change() as survives:
            return super().open(path, create=True) if survives else -1

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        with self._change() as survives:
            super().pwrite(descriptor, data if survives else data[: len(data) // 2], position)

    def fsync(self, descriptor: int) -> None:
        with self._change():
            pass

    def fsync_directory(self, path: str) -> None:
        with self._change():
            pass

    def rename(self, source: str, target: str) -> None:
        with self._change() as survives:
            if survives:
                super().rename(source, target)

    def remove(self, path: str) -> None:
        with self._change() as survives:
            if survives:
                super().remove(path)

    def make_directory(self, path: str) -> None:
        with self._change() as survives:
            if survives:
                super().make_directory(path)

    def remove_directory(self, path: str) -> None:
        with self._change() as survives:
            if survives:
                super().remove_directory(path)
            else:
                min(Path(path).iterdir()).unlink()


class KilledStore(InMemoryStore):
    """Ends the process at its n-th transaction, which is applied or not. A transaction has few operations."""

    max_operations = 8
    left = 1 << 30
    is_applied = False

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        self.left -= 1
        if self.left > 0:
            return await super().txn(when, then)
        if self.is_applied:
            await super().txn(when, then)
        raise KilledError


class State:
    """A stopped machine in a directory: copied, moved by n workers, and compared."""

    def __init__(self, base: Path, kvs: list[KV], revision: int) -> None:
        self.base = base
        self.host = Host(base / "a", base / "b")
        self.store = KilledStore()
        self.store.restore(kvs, revision)

    async def spread(self, workers: int, files: Files | None = None) -> Outcome:
        config = self.host.config(workers)
        with locked_machine(config, files or UnsyncedFiles()) as machine:
            return await spread(config, machine, self.store, SeededRandomness(7))

    def files(self) -> dict[str, bytes]:
        """Return every file but locks and temporary ones, and (empty) every directory."""
        return {
            str(path.relative_to(self.base)): b"" if path.is_dir() else path.read_bytes()
            for path in self.base.rglob("*")
            if path.name != LOCK and path.suffix != ".tmp" and "metadata.sqlite" not in path.name
        }

    async def values(self) -> dict[bytes, bytes]:
        return {kv.key: kv.value for kv in (await self.store.range(b""))[0]}

    async def copy(self, base: Path) -> State:
        shutil.copytree(self.base, base)
        kvs, revision = await self.store.range(b"")
        return State(base, kvs, revision)


@pytest.fixture
async def one(tmp_path: Path) -> State:
    """A machine with one worker, which has stopped."""
    base = tmp_path / "one"
    host = Host(base / "a", base / "b")
    async with host.running(1) as running, running.wire(1) as wire:
        for topic, partitions in (("one", 1), ("three", 3), ("worker.1", 1)):
            await create(wire, topic, partitions)
            for index in range(partitions):
                for value in (b"a", b"b"):
                    await produce(wire, topic, batch(value), index)
        await deleted(wire, "three", 1, partition=1)
    return State(base, *read_file(host.store_path))


@pytest.fixture
async def three(one: State, tmp_path: Path) -> State:
    state = await one.copy(tmp_path / "three")
    await state.spread(3)
    return state


async def _assert_start_refused(state: State, workers: int) -> None:
    config = state.host.config(workers)
    assert "odradek workers --spread" in str(refuse_unfinished(config))
    for number in range(workers):
        own = BrokerConfig.load(None, state.host.properties(workers) | worker_properties(config, number))
        with pytest.raises(LogDirRefusedError, match=WORKERS_PLAN):
            await Broker(own, store=state.store, worker=Worker("host", None)).start()


async def _kill_everywhere(before: State, workers: int, base: Path) -> None:
    """Kill a move to `workers` at each change of the disk, repeat it, and compare the results."""
    after = await before.copy(base / "after")
    assert (await after.spread(workers)).moved
    expected = after.files(), await after.values()
    untouched = before.files(), await before.values()
    assert expected != untouched
    refused = number = 0
    while True:
        number += 1
        state = await before.copy(base / "killed")
        try:
            await state.spread(workers, KilledFiles(number))
        except KilledError:
            pass
        else:
            break
        if refuse_unfinished(state.host.config(workers)) is None:
            assert (state.files(), await state.values()) in (untouched, expected), number
        else:
            refused += 1
            if refused % 10 == 1:
                await _assert_start_refused(state, workers)
        outcome = await state.spread(workers)
        assert outcome.remaining == []
        assert (state.files(), await state.values()) == expected, number
        shutil.rmtree(state.base)
    assert refused > 40
    assert (state.files(), await state.values()) == expected


@pytest.mark.slow
async def test_killed_while_it_grows(one: State, tmp_path: Path) -> None:
    await _kill_everywhere(one, 3, tmp_path)


@pytest.mark.slow
async def test_killed_while_it_shrinks(three: State, tmp_path: Path) -> None:
    await _kill_everywhere(three, 1, tmp_path)


@pytest.mark.parametrize("is_applied", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
async def test_killed_at_each_transaction(three: State, tmp_path: Path, workers: int, *, is_applied: bool) -> None:
    after = await three.copy(tmp_path / "after")
    await after.spread(workers)
    number = 0
    while True:
        number += 1
        state = await three.copy(tmp_path / f"killed-{number}")
        state.store.left, state.store.is_applied = number, is_applied
        try:
            await state.spread(workers)
        except KilledError:
            pass
        else:
            break
        await _assert_start_refused(state, workers)
        state.store.left = 1 << 30

        outcome = await state.spread(workers)

        assert (outcome.moved, outcome.finished > 0) == (0, True)
        assert (state.files(), await state.values()) == (after.files(), await after.values())
    assert number >= 3


async def test_a_move_to_another_number_of_workers_finishes_the_first_one_before(three: State, tmp_path: Path) -> None:
    state = await three.copy(tmp_path / "base")
    state.store.left = 2
    with pytest.raises(KilledError):
        await state.spread(2)
    state.store.left = 1 << 30

    outcome = await state.spread(1)

    assert outcome.finished
    assert outcome.moved
    assert state.host.partitions(1) == state.host.partitions(2) == set()
    state.host.store_path.unlink()
    write_file(state.host.store_path, *await state.store.range(b""))
    async with state.host.running(1) as running:
        assert await running.values("three", 1, 1) == [b"b"]
        assert await running.values("three", 2) == [b"a", b"b"]
        assert await running.values("worker.1") == [b"a", b"b"]

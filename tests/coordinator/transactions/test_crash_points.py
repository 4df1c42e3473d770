"""A stop at each change of the disk during two transactions, over three partitions and the offsets of a group.

The first transaction is committed, the second aborted. From each image of the disk (`recorded_disk`) a broker starts:

- No transaction is left between its decision and its end.
- Consumers of committed records, and of the group's offset, see all of the first transaction or nothing: all if its
  EndTxn was answered, nothing if it was not sent. They never see anything of the second.
- A transaction without a decision is open: its producer repeats the request that was not answered, goes on to the end
  of the script, and then everything is as if nothing had happened: no record is lost, or there twice.

The same holds for a disk that fails, or is full, at any of its changes, which ends the broker. Under `flush.messages=1`
the same holds after a power cut. What the default may lose there is in docs/durability.md.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.transactions import transaction_coordinator
from odradek.broker.coordinator.transactions.transaction_coordinator import transaction_state_topic
from odradek.broker.startup.machine import Machine
from odradek.broker.startup.temporary_log_dir import MEMORY
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.records.batch_header import batch_headers
from odradek.protocol.records.record_iterator import iter_records
from tests.checker.mutants import MUTANTS, Patch
from tests.coordinator.transactions.recorded_disk import FailingFiles, Image, InlineThreads, RecordedFiles
from tests.effort import some
from tests.handlers.requests import create, fetch
from tests.handlers.transactional_batches import ProducingProducer
from tests.storage.simulated_disk import SimulatedFiles
from tests.wire import Wire

PARTITIONS = range(3)
BEFORE, COMMITTED, ABORTED = 1, 5, 9
"""The offsets of the group: before the transactions, of the first, and of the second."""
CUTS = 1
"""Power cuts at each change; 20 of them take a minute."""
PATIENCE = 10.0
"""Seconds for one image; more is an endless wait."""
SYNCED = {"log_flush_interval_messages": "1"}
PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.index.size.max.bytes": "1024",
}
_RETRIED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
    }
)


@pytest.fixture
def metadata_path() -> Iterator[Path]:
    """A directory in memory if possible: only the metadata are in real files, and they are synced at each start."""
    with TemporaryDirectory(dir=MEMORY if Path(MEMORY).is_dir() else None) as path:
        yield Path(path)


Step = Callable[["Script"], Awaitable[ErrorCode]]


class RefusedError(AssertionError):
    """A request of the script was answered with an error that a producer does not retry."""


class Script(ProducingProducer):
    """The producer, and the requests that it sends, in order. `states` has it before each of them, and at the end."""

    def __init__(self, wire: Wire, *, is_new: bool) -> None:
        super().__init__(wire, is_new=is_new)
        self.transactional_id = "t"
        self.answered = 0
        self.states: list[Script] = []

    def steps(self) -> list[Step]:
        return [
            lambda self: self.initialize(),
            *self._transaction(b"a", 0, COMMITTED, commit=True),
            *self._transaction(b"b", 1, ABORTED, commit=False),
        ]

    def _transaction(self, value: bytes, number: int, offset: int, *, commit: bool) -> list[Step]:
        sequence = 0 if self.is_new else number  # the epoch of version 2 is a new one
        steps: list[Step] = [
            lambda self, index=index: self.produce_one(index, value, sequence)  # type: ignore[misc]
            for index in PARTITIONS
        ]
        if not self.is_new:
            steps.insert(0, lambda self: self.add_all())
            steps.append(lambda self: self.add_offsets("g"))
        return [
            *steps,
            lambda self: self.commit_offset(offset),
            lambda self: self.end(commit=commit, version=5 if self.is_new else 3),
        ]

    @property
    def end_of_first(self) -> int:
        """The index of the step that commits the first transaction."""
        return len(self.steps()) // 2

    async def run(self) -> None:
        """Send all requests, from the one after the last that was answered."""
        for step in self.steps()[self.answered :]:
            self.states.append(copy.copy(self))
            while (code := await step(self)) in _RETRIED:
                pass
            if code is not ErrorCode.NONE:
                raise RefusedError(f"request {self.answered}: {code.name}")
            self.answered += 1
        self.states.append(copy.copy(self))

    async def produce_one(self, index: int, value: bytes, sequence: int) -> ErrorCode:
        return ErrorCode((await self.produce("t", value, index=index, sequence=sequence)).error_code)

    async def add_all(self) -> ErrorCode:
        codes = (await self.add({"t": [*PARTITIONS]})).values()
        return next(iter(codes))

    async def commit_offset(self, offset: int) -> ErrorCode:
        topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, offset)])]
        request = TxnOffsetCommitRequest(self.transactional_id, "g", self.producer_id, self.epoch, topics=topics)
        [[row]] = [topic.partitions for topic in (await self.wire.ask(request, 5 if self.is_new else 4)).topics]
        return ErrorCode(row.error_code)


@asynccontextmanager
async def broker_on(files: SimulatedFiles, directory: Path, **properties: str) -> AsyncIterator[tuple[Broker, Wire]]:
    """Run a broker whose logs are simulated; its metadata are in a file of `directory`."""
    draw = random.Random(1)
    chosen = {key.replace("_", "."): value for key, value in properties.items()}
    broker = Broker(
        {**PROPERTIES, **chosen, "log.dirs": f"{directory}"},
        clock=ManualClock(),  # the time of the batches, so that no segment is rolled or deleted for its age
        machine=Machine(new_files=lambda: files, new_threads=lambda loop: InlineThreads(loop, draw)),
    )
    async with broker, Wire("127.0.0.1", broker.port) as wire:
        yield broker, wire


async def prepared(wire: Wire, *, is_new: bool) -> Script:
    """Create the topic, the coordinators, and the first offset of the group."""
    await create(wire, "t", len(PARTITIONS))
    script = Script(wire, is_new=is_new)
    await script.find_coordinator()
    await wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    rows = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, BEFORE)])]
    while (await wire.ask(OffsetCommitRequest("g", topics=rows), 8)).topics[0].partitions[0].error_code:
        pass
    return script


async def record(
    directory: Path, *, is_new: bool, power_cuts: int = 0, **properties: str
) -> tuple[Script, list[Image]]:
    """Run the script once, and return it with the images of the disk at each change."""
    files = RecordedFiles(power_cuts)
    async with asyncio.timeout(PATIENCE), broker_on(files, directory, **properties) as (_, wire):
        script = await prepared(wire, is_new=is_new)
        files.begin(lambda: script.answered)
        await script.run()
        files.end()
    return script, files.images


async def run_until_failure(directory: Path, change: int, *, is_full: bool) -> tuple[Script, Image | None]:
    """Run the script on a disk whose change of this number fails; return the image then, None if it never did."""
    files = FailingFiles(is_full=is_full)
    async with asyncio.timeout(PATIENCE), broker_on(files, directory) as (broker, wire):
        script = await prepared(wire, is_new=True)
        files.fail_at = files.operations + change
        running = asyncio.ensure_future(script.run())
        failed = asyncio.ensure_future(broker.failed.wait())
        await asyncio.wait({running, failed}, return_when=asyncio.FIRST_COMPLETED)
        has_failed = files.operations >= files.fail_at
        if has_failed:
            await failed
        image = Image(files.after_kill(), script.answered, change) if has_failed else None
        failed.cancel()
        running.cancel()
        with suppress(asyncio.CancelledError, RefusedError):
            await running
        if not has_failed:
            files.fail_at = None
        return script, image


async def check(image: Image, script: Script, directory: Path, *, resumes: bool = True) -> None:
    """Start a broker from the image and look at it. Then run the rest of the script there, and look again."""
    async with asyncio.timeout(PATIENCE), broker_on(SimulatedFiles(image.root), directory) as (_, wire):
        rest = copy.copy(script.states[image.answered])
        rest.wire, rest.states = wire, []
        await rest.find_coordinator()
        status = await _settled(rest)
        values, offset = await _seen(wire, isolation_level=1)
        is_committed = offset == COMMITTED
        assert values == [[b"a"] if is_committed else []] * len(PARTITIONS), f"torn: {values}, {offset}, {status}"
        assert is_committed or offset == BEFORE, f"lost: {offset}"
        if image.answered != script.end_of_first:
            assert is_committed == (image.answered > script.end_of_first), f"lost: {offset}, {status}"
        if 1 < image.answered < script.end_of_first:
            assert status == "Ongoing", f"ended: {status}"
        assert status == "Ongoing" or await _hanging(wire) == [], f"hanging: {status}"
        if resumes:
            await rest.run()
            assert await _settled(rest) == "CompleteAbort"
            assert await _seen(wire, isolation_level=1) == ([[b"a"]] * len(PARTITIONS), COMMITTED)
            assert await _seen(wire, isolation_level=0) == ([[b"a", b"b"]] * len(PARTITIONS), COMMITTED)
            assert await _hanging(wire) == []


async def _seen(wire: Wire, *, isolation_level: int) -> tuple[list[list[bytes | None]], int]:
    """Return the values in the partitions, and the offset of the group."""
    return [await _read(wire, index, isolation_level) for index in PARTITIONS], await _committed_offset(wire)


async def _settled(producer: Script) -> str:
    """Return the status when no markers are being written."""
    while True:
        row = await producer.describe()
        if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            return ""
        if row.error_code == ErrorCode.NONE and not row.transaction_state.startswith("Prepare"):
            return row.transaction_state


async def _read(wire: Wire, index: int, isolation_level: int) -> list[bytes | None]:
    """Return the values that a consumer of this isolation level gets, which drops those of aborted transactions."""
    row = await fetch(wire, "t", partition=index, isolation_level=isolation_level)
    assert row.error_code == ErrorCode.NONE
    begins = {(each.producer_id, each.first_offset) for each in row.aborted_transactions or []}
    is_aborted = False  # of the one producer
    values: list[bytes | None] = []
    next_offset = 0
    for position, header in batch_headers(row.records or b""):
        assert header.base_offset == next_offset
        next_offset = header.next_offset
        is_aborted = is_aborted or (header.producer_id, header.base_offset) in begins
        if header.is_control:
            is_aborted = False
        elif not is_aborted:
            values += [record.value for record in iter_records(row.records, position, header)]
    assert next_offset == (row.last_stable_offset if isolation_level else row.high_watermark), "not all was fetched"
    return values


async def _committed_offset(wire: Wire) -> int:
    """Return the group's offset, without regard to one that is pending."""
    topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)], require_stable=False)
    while True:
        [group] = (await wire.ask(request, 8)).groups
        if not group.error_code:
            offset: int = group.topics[0].partitions[0].committed_offset
            return offset


async def _hanging(wire: Wire) -> list[int]:
    """Return the partitions whose last stable offset is below the high watermark."""
    ends: list[list[Any]] = []
    for isolation_level in (0, 1):
        rows = [ListOffsetsPartition(index, timestamp=-1) for index in PARTITIONS]
        request = ListOffsetsRequest(-1, isolation_level, [ListOffsetsTopic("t", rows)])
        [topic] = (await wire.ask(request, 4)).topics
        ends.append([row.offset for row in sorted(topic.partitions, key=lambda row: row.partition_index)])
    return [index for index in PARTITIONS if ends[0][index] != ends[1][index]]


@pytest.mark.parametrize("is_new", [True, False], ids=["version 2", "version 1"])
async def test_a_kill_at_any_change_of_the_disk_tears_no_transaction(metadata_path: Path, is_new: bool) -> None:
    script, images = await record(metadata_path, is_new=is_new)
    assert len(images) > 40

    for image in some(images):
        await check(image, script, metadata_path)


@pytest.mark.parametrize("is_new", [True, False], ids=["version 2", "version 1"])
async def test_a_power_cut_tears_no_transaction_where_each_record_is_synced(metadata_path: Path, is_new: bool) -> None:
    script, images = await record(metadata_path, is_new=is_new, power_cuts=CUTS, **SYNCED)
    assert len(images) > CUTS * 60

    for image in some(images):
        await check(image, script, metadata_path)


@pytest.mark.parametrize("is_full", [True, False], ids=["full", "failing once"])
async def test_a_disk_that_fails_at_any_change_tears_no_transaction(metadata_path: Path, is_full: bool) -> None:
    """Prepare records, markers and Complete records among them. The broker ends; then the disk is repaired."""
    count = 0
    for change in some(range(1, 200)):
        directory = metadata_path / str(change)
        directory.mkdir()
        script, image = await run_until_failure(directory, change, is_full=is_full)
        if image is None:
            break
        await check(image, script, directory)
        count += 1
    assert count >= len(some(range(36)))


def _unsynced_decisions(config: BrokerConfig) -> InternalTopic:
    topic = transaction_state_topic(config)
    return msgspec.structs.replace(topic, configs={**topic.configs, "flush.messages": str(2**63 - 1)})


DEFECTS: Mapping[str, tuple[Patch, ...]] = {
    "decisions are not synced": ((transaction_coordinator, "transaction_state_topic", _unsynced_decisions),),
    "a marker before the decision": MUTANTS["a marker before the decision"],
}


@pytest.mark.parametrize("defect", DEFECTS)
async def test_a_power_cut_tears_a_transaction_of_a_broker_with_this_defect(metadata_path: Path, defect: str) -> None:
    with ExitStack() as stack:
        for owner, name, replacement in DEFECTS[defect]:
            stack.enter_context(mock.patch.object(owner, name, replacement))
        script, images = await record(metadata_path, is_new=True, power_cuts=4, **SYNCED)

    assert "torn" in await _kinds_of_failures(images, script, metadata_path, {"torn"})


async def test_by_default_a_power_cut_may_tear_a_transaction(metadata_path: Path) -> None:
    """As docs/durability.md says; so the tests above would find a broker that does not sync."""
    script, images = await record(metadata_path, is_new=True, power_cuts=4)
    wanted = {"torn", "lost", "hanging"}

    assert await _kinds_of_failures(images, script, metadata_path, wanted) >= wanted


async def _kinds_of_failures(images: list[Image], script: Script, directory: Path, wanted: set[str]) -> set[str]:
    """Return the first words of what `check` finds, until these have been found."""
    found: set[str] = set()
    for image in images:
        try:
            await check(image, script, directory, resumes=False)
        except AssertionError as error:
            found.add(str(error).partition(":")[0])
        if wanted <= found:
            break
    return found

"""A producer that sends single requests, and some of them late: while a later transaction of its id is open.

```
one connection     init ─ produce ─ end │ produce ──────────────────── end │ init ─ …
kept, then sent            produce, end ╌╌╌╌╌╌╌╌► late, over another connection
```

A client that tries again over another connection does that, or a network that delays a packet. A request is late once
its epoch is not the producer's any more: after the end of its transaction in version 2 of the protocol, after the next
InitProducerId in version 1. It may not change a later transaction. A late batch has a value, and a late commit of
offsets an offset, that belongs to no transaction of the history, so that reading it is an anomaly.

Some transactions commit their offsets by a large request over the other connection, and end meanwhile: either the
commit is refused, or the end is behind it in the log.

The id belongs to this producer alone, so that each refused request is an anomaly.
"""

from __future__ import annotations

import asyncio
from asyncio import IncompleteReadError
from typing import NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.checker.history import CommittedOffset, Outcome, Transaction, Write
from tests.checker.producers import PARTITIONS, TOPIC, Run
from tests.peers.transactional.raw import (
    GROUP,
    PAUSE,
    RawProducer,
    RequestError,
    Versioned,
    error_codes,
    find_coordinator,
)
from tests.wire import Wire

SOURCE, SOURCE_PARTITIONS = "source", 40
"""The topic whose offsets are committed: with long metadata, those of all partitions are a large append."""
_LONG = "x" * 4000
_MOST_KEPT = 30
_COORDINATOR_EPOCH = 1000
"""Of late markers: newer than any, so that they are refused for their producer's epoch."""
_NOT_YET = {
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


class _Late(NamedTuple):
    """A request that is kept, and the session and the transaction that it belongs to."""

    session: int
    transaction: int
    request: Versioned
    marked: int | None = None
    """The partition of a marker, which must know a newer epoch of the producer to refuse it."""


class LateProducer:
    """The producer of one run. It adds its group's offsets, and errors, to the history itself."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._random = run.random
        self._history = run.history
        self._group = f"group-{run.name}"
        self._offsets = run.history.committed_offsets.setdefault(self._group, [])
        self._kept: list[_Late] = []
        self._session = self._transaction = self._last_offset = 0

    async def produce(self) -> None:
        """Send transactions until the run is over; begin again after each lost connection."""
        host, port = self._run.bootstrap.split(":")
        while not self._run.over.is_set():
            try:
                async with Wire(host, int(port)) as wire, Wire(host, int(port)) as other:
                    await self._produce(wire, other)
            except TimeoutError:
                raise
            except (OSError, IncompleteReadError):
                await asyncio.sleep(PAUSE)
            except RequestError as error:
                self._history.failures.append(f"{self._run.transactional_id} was answered {error}")

    async def _produce(self, wire: Wire, other: Wire) -> None:
        """Initialize the id, send some transactions, and now and then leave the last one open."""
        self._session += 1
        producer = RawProducer(wire, self._run.transactional_id, generation=self._random.choice((1, 2)))
        async with asyncio.timeout(self._run.timeout):
            await producer.init()
            await find_coordinator(wire, self._group, GROUP)
        for _ in range(self._random.randrange(1, 8)):
            await self._read_offset(wire)
            if self._run.over.is_set():
                return
            self._transaction += 1
            attempt = _Attempt()
            try:
                async with asyncio.timeout(self._run.timeout):
                    is_ended = await self._attempt(attempt, producer, other)
            finally:
                name = f"{self._run.name}-{self._transaction}"
                self._run.note(Transaction(name, attempt.outcome, tuple(attempt.writes)))
                if attempt.offset is not None:
                    outcome = attempt.outcome if attempt.offset_is_certain else Outcome.UNKNOWN
                    self._offsets.append(CommittedOffset(attempt.offset, outcome))
            if not is_ended:
                return

    async def _attempt(self, attempt: _Attempt, producer: RawProducer, other: Wire) -> bool:
        """Send one transaction; return whether it was ended."""
        commits = self._random.random() < 0.6
        offset_is_sent = self._random.choice(("first", "meanwhile", "never"))
        for number in range(self._random.randrange(1, 5)):
            partition = self._random.randrange(PARTITIONS)
            await self._send(attempt, producer, f"{self._run.name}-{self._transaction}-{number}", partition)
            if self._random.random() < 0.5:
                await self._send_late(attempt, producer, other)
        if offset_is_sent != "never" and producer.generation == 1:
            await producer.add_group(self._group)
        if offset_is_sent == "first":
            await self._commit_offset(attempt, producer, producer.wire)
        self._keep(producer)
        if self._random.random() < 0.15:
            return False
        if offset_is_sent != "meanwhile":
            await self._end(attempt, producer, commits)
            return True
        committing = asyncio.create_task(self._commit_offset(attempt, producer, other, _LONG))
        await asyncio.sleep(self._random.uniform(0.002, 0.02))
        try:
            await self._end(attempt, producer, commits)
        finally:
            [failed] = await asyncio.gather(committing, return_exceptions=True)
            attempt.offset_is_certain = failed is None
        return True

    async def _end(self, attempt: _Attempt, producer: RawProducer, commits: bool) -> None:
        attempt.outcome = Outcome.UNKNOWN if commits else Outcome.ABORTED
        await producer.end(committed=commits)
        attempt.outcome = Outcome.COMMITTED if commits else Outcome.ABORTED

    async def _send(self, attempt: _Attempt, producer: RawProducer, value: str, partition: int) -> None:
        write = Write(partition, value)
        attempt.writes.append(write)
        if producer.generation == 1:
            await producer.add({TOPIC: [partition]})
        offset = await producer.send(TOPIC, value.encode(), partition=partition)
        attempt.writes[-1] = write._replace(offset=offset)

    # ------------------------------------------------------------------------------------------------ committed offsets

    async def _commit_offset(self, attempt: _Attempt, producer: RawProducer, wire: Wire, metadata: str = "") -> None:
        """Commit the next offset for every partition of the source. A commit that is refused is none."""
        self._last_offset += 1
        offsets = {(SOURCE, index): self._last_offset for index in range(SOURCE_PARTITIONS)}
        attempt.offset = self._last_offset
        answer = await wire.ask(*producer.offsets(self._group, offsets, metadata))
        if any(error_codes(answer)):
            attempt.offset = None

    async def _read_offset(self, wire: Wire) -> None:
        """Note the committed offset when no transaction holds it back any more."""
        topics = [OffsetFetchRequestTopics(SOURCE, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self._group, topics=topics)], require_stable=True)
        try:
            async with asyncio.timeout(self._run.timeout / 2):
                answer = await wire.ask(request, 8)
                while codes := {ErrorCode.of(code) for code in error_codes(answer) if code}:
                    assert codes <= _NOT_YET, codes
                    await asyncio.sleep(PAUSE)
                    answer = await wire.ask(request, 8)
        except TimeoutError as error:
            raise TimeoutError(f"the offsets of {self._group} stay unstable") from error
        self._offsets.append(CommittedOffset(answer.groups[0].topics[0].partitions[0].committed_offset))

    # ---------------------------------------------------------------------------------------------------- late requests

    def _keep(self, producer: RawProducer) -> None:
        """Keep some requests of this transaction."""
        late = f"late-{self._run.name}-{self._transaction}"
        partition = self._random.randrange(PARTITIONS)
        offsets = {(SOURCE, 0): 1_000_000 + self._transaction}
        add = AddPartitionsToTxnRequest([], *producer.who, [AddPartitionsToTxnTopic(TOPIC, [partition])])
        requests = [
            producer.batch(TOPIC, late.encode(), partition=partition),
            producer.offsets(self._group, offsets),
            producer.ending(committed=True),
            producer.ending(committed=False),
            Versioned(add, 3),
        ]
        kept = [_Late(self._session, self._transaction, request) for request in requests]
        kept.append(_Late(self._session, self._transaction, _marker(producer, partition), partition))
        self._kept += self._random.sample(kept, 3)
        del self._kept[:-_MOST_KEPT]

    async def _send_late(self, attempt: _Attempt, producer: RawProducer, other: Wire) -> None:
        """Send some of the kept requests that are late now, the newest ones first. Nothing depends on the answers."""
        written = {write.partition for write in attempt.writes}
        late = [each for each in self._kept if self._is_late(each, producer, written)]
        for each in late[: -self._random.randrange(1, 4) : -1]:
            self._kept.remove(each)
            await other.ask(*each.request)

    def _is_late(self, kept: _Late, producer: RawProducer, written: set[int]) -> bool:
        if kept.marked is not None and kept.marked not in written:
            return False
        has_new_epoch = producer.generation == 2 and kept.transaction < self._transaction
        return has_new_epoch or kept.session < self._session


class _Attempt:
    """The contents of a transaction, and what its producer has learned of it."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.offset: int | None = None
        self.offset_is_certain = True
        """Whether its commit was answered, or cannot have been written when the transaction was committed."""
        self.outcome = Outcome.ABORTED


def _marker(producer: RawProducer, partition: int) -> Versioned:
    """The marker that commits the transaction in a partition."""
    is_second = producer.generation == 2
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch + is_second,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(TOPIC, [partition])],
        coordinator_epoch=_COORDINATOR_EPOCH,
        transaction_version=2 if is_second else 0,
    )
    return Versioned(WriteTxnMarkersRequest([marker]), 2)


def produce_late(run: Run) -> None:
    asyncio.run(LateProducer(run).produce())

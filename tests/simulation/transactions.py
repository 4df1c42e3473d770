"""The transactional clients of a run: producers of both versions of the protocol, and a reader of committed records.

```
InitProducerId ─► batches to some partitions, perhaps an offset of a group ─► EndTxn: commit or abort ─► the next
      ▲                                                                           │
      └── a whim; fenced; in version 1 an outcome is unknown ◄────────────────────┘
```

| after an unknown outcome | version 1 | version 2 (KIP-890) |
|---|---|---|
| Produce | the same batch again: its sequence shows a duplicate | likewise |
| any other request | a new epoch | the same request again |

In version 1 the transactions of a producer share its epoch, so that a late request would take effect in a later one. A
whim leaves a transaction open, for the next InitProducerId or the time-out to abort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from odradek.client.consumer.completed_fetch import CompletedFetch
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.schema import Message
from tests.simulation.client import Client, only
from tests.simulation.history import Partition
from tests.simulation.transaction_history import Outcome, SimulatedTransaction, TransactionHistory

TIMEOUT_MS: Final = 4000
"""After this time the coordinator aborts a transaction."""
PARTITION_BYTES: Final = 8 * 1024

_ACKS_ALL: Final = -1
_READ_COMMITTED: Final = 1
_GROUP, _TRANSACTION = 0, 1
_WHIM: Final = 0.05
_ABORTED_SHARE: Final = 0.3

_AGAIN: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
_FENCED: Final = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
"""The coordinator has aborted the transaction, after its time-out."""


class EpochEndedError(Exception):
    """The producer needs a new epoch."""


class TransactionalProducer:
    """One transactional id, whose transactions write to some of `partitions`."""

    def __init__(
        self,
        client: Client,
        history: TransactionHistory,
        topic: tuple[str, Sequence[Partition]],
        values: Iterator[int],
        version: int,
        fail: Callable[[str], None],
    ) -> None:
        """`topic`: the name, and the partitions of it; `version`: 1 or 2."""
        self.client = client
        self.name = client.name
        self._history = history
        self._topic, self._partitions = topic
        self._values = values
        self._is_new = version > 1
        self._fail = fail
        self._coordinators: dict[int, int] = {}
        self._producer_id = self._epoch = -1
        self._sequences: dict[Partition, int] = {}
        self._offset = 0

    async def run(self, is_over: Callable[[], bool]) -> None:
        """Run transactions until the run is over."""
        draw = self.client.draw
        while not is_over():
            try:
                if self._producer_id < 0:
                    await self.initialize()
                await self._run_one()
                if draw.random() < _WHIM:
                    self._producer_id = -1
            except EpochEndedError:
                self._producer_id = -1
            await self.client.pause(2.0)

    async def initialize(self) -> None:
        """Get an epoch, whatever it takes; an open transaction is aborted."""
        request = InitProducerIdRequest(self.name, TIMEOUT_MS)
        while True:
            answer = await self._ask_coordinator(
                _TRANSACTION, request, InitProducerIdResponse, 5 if self._is_new else 4
            )
            if answer is not None and self._is_accepted("InitProducerId", answer.error_code):
                self._go_on(answer.producer_id, answer.producer_epoch)
                return
            self._coordinators.clear()
            await self.client.pause(0.3)

    def _go_on(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._sequences.clear()
        self._producer_id, self._epoch = producer_id, epoch

    async def _run_one(self) -> None:
        draw = self.client.draw
        partitions = draw.sample(self._partitions, draw.randint(1, len(self._partitions)))
        batches = [(each, [b"t%d" % next(self._values) for _ in range(draw.randint(1, 2))]) for each in partitions]
        offset = -1
        if draw.random() < 0.5:
            offset, self._offset = self._offset, self._offset + 1
        places = {value: partition for partition, values in batches for value in values}
        transaction = self._history.begin(self.name, places, offset)
        if not self._is_new:
            await self._add_partitions(partitions)
        for partition, values in batches:
            await self._write(partition, values)
            if draw.random() < _WHIM:
                raise EpochEndedError
            await self.client.pause(0.2)
        if offset >= 0:
            await self._commit_offset(offset)
        await self._end(transaction, Outcome.ABORTED if draw.random() < _ABORTED_SHARE else Outcome.COMMITTED)

    async def _add_partitions(self, partitions: Sequence[Partition]) -> None:
        topics = [AddPartitionsToTxnTopic(self._topic, sorted(index for _, index in partitions))]
        request = AddPartitionsToTxnRequest([], self.name, self._producer_id, self._epoch, topics)
        while True:
            answer = await self._ask_coordinator(_TRANSACTION, request, AddPartitionsToTxnResponse, 3)
            codes = {
                row.partition_error_code
                for topic in ([] if answer is None else answer.results_by_topic_v3_and_below)
                for row in topic.results_by_partition
            }
            codes.discard(ErrorCode.OPERATION_NOT_ATTEMPTED)  # because of another partition's error
            if await self._is_done("AddPartitionsToTxn", min(codes, default=None)):
                return

    async def _write(self, partition: Partition, values: Sequence[bytes]) -> None:
        sequence = self._sequences.get(partition, 0)
        batch = BatchBuilder(
            producer_id=self._producer_id, producer_epoch=self._epoch, base_sequence=sequence, is_transactional=True
        )
        for value in values:
            batch.append(self.client.now_ms(), None, value)
        topic_id, index = partition
        data = TopicProduceData(self._topic, topic_id, [PartitionProduceData(index, bytes(batch.build()))])
        request = ProduceRequest(self.name, _ACKS_ALL, 1500, [data])
        while True:
            leader = await self.client.leader(*partition)
            if leader is not None:
                answer = await self.client.ask(leader.node_id, request, ProduceResponse, 13 if self._is_new else 11)
                row = None if answer is None else only(only(answer.responses).partition_responses)
                if row is not None and self._is_accepted("Produce", row.error_code):
                    self._history.acknowledge(values, row.base_offset)
                    self._sequences[partition] = sequence + len(values)
                    return
                self.client.forget_leader(*partition)
            await self.client.pause(0.2)

    async def _commit_offset(self, offset: int) -> None:
        if not self._is_new:
            added = AddOffsetsToTxnRequest(self.name, self._producer_id, self._epoch, self.name)
            while True:
                answer = await self._ask_coordinator(_TRANSACTION, added, AddOffsetsToTxnResponse, 3)
                if await self._is_done("AddOffsetsToTxn", None if answer is None else answer.error_code):
                    break
        rows = [TxnOffsetCommitRequestPartition(0, offset)]
        request = TxnOffsetCommitRequest(
            self.name,
            self.name,
            self._producer_id,
            self._epoch,
            topics=[TxnOffsetCommitRequestTopic(self._topic, rows)],
        )
        while True:
            found = await self._ask_coordinator(_GROUP, request, TxnOffsetCommitResponse, 5 if self._is_new else 4)
            code = None if found is None else only(only(found.topics).partitions).error_code
            if await self._is_done("TxnOffsetCommit", code):
                return

    async def _end(self, transaction: SimulatedTransaction, outcome: Outcome) -> None:
        if outcome is Outcome.COMMITTED:
            transaction.outcome = Outcome.UNKNOWN
        request = EndTxnRequest(self.name, self._producer_id, self._epoch, outcome is Outcome.COMMITTED)
        while True:
            answer = await self._ask_coordinator(_TRANSACTION, request, EndTxnResponse, 5 if self._is_new else 4)
            if answer is not None and answer.error_code == ErrorCode.INVALID_TXN_STATE:
                raise EpochEndedError  # it was aborted after its time-out, and this epoch is the last but one
            if await self._is_done("EndTxn", None if answer is None else answer.error_code):
                self._history.end(transaction, outcome)
                if self._is_new and answer is not None:
                    self._go_on(answer.producer_id, answer.producer_epoch)
                return

    async def _is_done(self, name: str, code: int | None) -> bool:
        """Return whether a request succeeded, else pause; raise if it must not be sent again."""
        if code is not None and self._is_accepted(name, code):
            return True
        self._coordinators.clear()
        if code is None and not self._is_new:
            raise EpochEndedError
        await self.client.pause(0.3)
        return False

    def _is_accepted(self, name: str, code: int) -> bool:
        """Return whether there is no error; raise if this epoch has ended. Any other error must be a retriable one."""
        if code == ErrorCode.NONE:
            return True
        if code in _FENCED:
            raise EpochEndedError
        if code not in _AGAIN:
            self._fail(f"{self.name}: {name} is answered {ErrorCode(code).name}")
            raise EpochEndedError
        return False

    async def _ask_coordinator(self, kind: int, request: Message, response: type[Any], version: int) -> Any:
        """Send a request to a coordinator; return None if there is no answer, or no coordinator now."""
        if kind not in self._coordinators:
            wanted = FindCoordinatorRequest(key_type=kind, coordinator_keys=[self.name])
            found = await self.client.ask(self.client.any_node(), wanted, FindCoordinatorResponse)
            row = None if found is None else only(found.coordinators)
            if row is None or row.error_code:
                return None
            self._coordinators[kind] = int(row.node_id)
        return await self.client.ask(self._coordinators[kind], request, response, version=version)

    async def fetch_offset(self) -> int:
        """Return the offset of the producer's group, -1 without one, whatever it takes."""
        topics = [OffsetFetchRequestTopics(self._topic, partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.name, topics=topics)], require_stable=True)
        while True:
            answer = await self._ask_coordinator(_GROUP, request, OffsetFetchResponse, 9)
            row = None if answer is None else only(answer.groups)
            if row is not None and not row.error_code:
                found = only(only(row.topics).partitions)
                if not found.error_code:
                    return int(found.committed_offset)
            self._coordinators.clear()
            await self.client.pause(0.3)


class CommittedReader:
    """Reads the committed records of all partitions in turn, and sometimes begins again."""

    def __init__(self, client: Client, history: TransactionHistory, partitions: Sequence[Partition]) -> None:
        self.client = client
        self._history = history
        self._partitions = partitions

    async def run(self, is_over: Callable[[], bool]) -> None:
        offsets = dict.fromkeys(self._partitions, 0)
        while not is_over():
            for partition, offset in offsets.items():
                after = await self.read_once(partition, offset)
                offsets[partition] = 0 if self.client.draw.random() < 0.05 else after
            await self.client.pause(1.5)

    async def read_all(self, partition: Partition, end_offset: int) -> None:
        """Read a partition up to an offset (exclusive), whatever it takes."""
        offset = 0
        while offset < end_offset:
            after = await self.read_once(partition, offset)
            if after == offset:
                await self.client.pause(0.3)
            offset = after

    async def read_once(self, partition: Partition, offset: int) -> int:
        """Send one Fetch; return the offset of the next one, the same if nothing was read."""
        topic_id, index = partition
        leader = await self.client.leader(*partition)
        if leader is None:
            return offset
        wanted = FetchPartition(index, leader.epoch, offset, partition_max_bytes=PARTITION_BYTES)
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            isolation_level=_READ_COMMITTED,
            topics=[FetchTopic(topic_id=topic_id, partitions=[wanted])],
        )
        answer = await self.client.ask(leader.node_id, request, FetchResponse)
        row = None if answer is None or not answer.responses else only(only(answer.responses).partitions)
        if row is None or row.error_code:
            self.client.forget_leader(*partition)
            return offset
        fetched = CompletedFetch(
            TopicPartition("", index),
            memoryview(row.records or b""),
            offset,
            check_crcs=True,
            aborted=row.aborted_transactions or [],
        )
        records = [(record.offset, record.value or b"") for record in fetched.records]
        self._history.read(partition, offset, fetched.next_offset, records)
        return fetched.next_offset

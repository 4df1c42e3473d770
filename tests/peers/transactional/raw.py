"""Transactions by single requests, so that a script chooses every version, id and epoch.

`RawProducer` repeats a request while the coordinator is loading or busy with the id, as clients do; every other error
fails. The generation of the protocol determines the versions: with the second one a partition is added by its first
batch, and EndTxn 5 returns the next epoch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from odradek.protocol.schema import Message
from tests.handlers.requests import batch, produce_request
from tests.wire import Wire

GROUP, TRANSACTION = 0, 1
ATTEMPTS = 3000
PAUSE = 0.01
_WAIT = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    # The leader of a new topic, and a coordinator that is away for an older producer.
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}


class Versioned(NamedTuple):
    """A request and its version."""

    request: Message
    version: int


class RequestError(Exception):
    """An error that the coordinator or a partition returned."""

    def __init__(self, code: int) -> None:
        super().__init__(ErrorCode.of(code).name)
        self.code = ErrorCode.of(code)


class RawProducer:
    """A transactional id, its producer id and epoch, and the next sequence of each partition."""

    def __init__(self, wire: Wire, transactional_id: str, *, generation: int = 2, timeout_ms: int = 60_000) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.generation = generation
        self.timeout_ms = timeout_ms
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}

    def use(self, wire: Wire) -> None:
        """Go on with another connection."""
        self.wire = wire

    async def init(self) -> None:
        """Get an id and an epoch; the present ones, if there are any, are not sent."""
        await find_coordinator(self.wire, self.transactional_id, TRANSACTION)
        request = InitProducerIdRequest(self.transactional_id, self.timeout_ms)
        answer = await ask(self.wire, request, 5 if self.generation == 2 else 4)
        self._set(answer.producer_id, answer.producer_epoch)

    def _set(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self._sequences.clear()

    @property
    def who(self) -> tuple[str, int, int]:
        return self.transactional_id, self.producer_id, self.epoch

    async def add(self, partitions: Mapping[str, Sequence[int]]) -> None:
        topics = [AddPartitionsToTxnTopic(name, list(indexes)) for name, indexes in partitions.items()]
        request = AddPartitionsToTxnRequest([], *self.who, topics)
        await ask(self.wire, request, 3)

    async def send(self, topic: str, *values: bytes, partition: int = 0) -> int:
        """Send one batch, and return its offset. The first generation must have added the partition."""
        request, version = self.batch(topic, *values, partition=partition)
        answer = await ask(self.wire, request, version)
        self._sequences[topic, partition] = self._sequences.get((topic, partition), 0) + len(values)
        offset: int = answer.responses[0].partition_responses[0].base_offset
        return offset

    def batch(self, topic: str, *values: bytes, partition: int = 0) -> Versioned:
        """Return the request that would send the next batch."""
        records = batch(
            *values,
            is_transactional=True,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences.get((topic, partition), 0),
        )
        request = produce_request(topic, records, partition, acks=-1, transactional_id=self.transactional_id)
        return Versioned(request, 12 if self.generation == 2 else 11)

    async def add_group(self, group: str) -> None:
        """Add the offsets of a group; only the first generation does."""
        await ask(self.wire, AddOffsetsToTxnRequest(*self.who, group), 3)

    async def send_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        if self.generation == 1:
            await self.add_group(group)
        await find_coordinator(self.wire, group, GROUP)
        await ask(self.wire, *self.offsets(group, offsets))

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int], metadata: str = "") -> Versioned:
        """Return the request that commits the offsets."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            row = TxnOffsetCommitRequestPartition(index, offset, committed_metadata=metadata)
            topics.setdefault(topic, []).append(row)
        rows = [TxnOffsetCommitRequestTopic(topic, partitions) for topic, partitions in topics.items()]
        request = TxnOffsetCommitRequest(self.transactional_id, group, self.producer_id, self.epoch, topics=rows)
        return Versioned(request, 5 if self.generation == 2 else 4)

    async def end(self, *, committed: bool) -> None:
        answer = await ask(self.wire, *self.ending(committed=committed))
        if self.generation == 2:
            self._set(answer.producer_id, answer.producer_epoch)

    def ending(self, *, committed: bool) -> Versioned:
        """Return the request that ends the transaction."""
        return Versioned(EndTxnRequest(*self.who, committed), 5 if self.generation == 2 else 4)

    async def await_state(self, *names: str) -> Any:
        """Wait until the transaction has one of these states, and return its description."""
        return await await_state(self.wire, self.transactional_id, *names)


async def await_state(wire: Wire, transactional_id: str, *names: str) -> Any:
    described = None
    for _ in range(ATTEMPTS):
        [described] = (await wire.ask(DescribeTransactionsRequest([transactional_id]), 0)).transaction_states
        if described.transaction_state in names:
            return described
        await asyncio.sleep(PAUSE)
    raise AssertionError(f"{described} is none of {names}")


async def find_coordinator(wire: Wire, key: str, kind: int) -> None:
    """Wait until there is a coordinator: the first request creates its topic."""
    for _ in range(ATTEMPTS):
        [found] = (await wire.ask(FindCoordinatorRequest("", kind, [key]), 4)).coordinators
        if not found.error_code:
            return
        assert ErrorCode.of(found.error_code) in _WAIT, found
        await asyncio.sleep(PAUSE)
    raise AssertionError(f"no coordinator for {key}")


async def ask(wire: Wire, request: Message, version: int) -> Any:
    """Send a request until it neither meets a loading coordinator nor a transition. Raises `RequestError`."""
    code = 0
    for _ in range(ATTEMPTS):
        answer = await wire.ask(request, version)
        code = next((code for code in error_codes(answer) if code), 0)
        if not code:
            return answer
        if ErrorCode.of(code) not in _WAIT:
            break
        await asyncio.sleep(PAUSE)
    raise RequestError(code)


def error_codes(answer: Any) -> list[int]:
    """All errors in a response."""
    if isinstance(answer, list):
        return [code for each in answer for code in error_codes(each)]
    if not hasattr(answer, "__struct_fields__"):
        return []
    found: list[int] = []
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        found += [value] if name.endswith("error_code") else error_codes(value)
    return found

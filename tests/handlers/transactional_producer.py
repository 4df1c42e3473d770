"""A transactional producer that sends one request at a time, in a version of the protocol that the test chooses."""

from __future__ import annotations

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.wire import Wire


class TransactionalProducer:
    """The producer `transactional_id`. The id and epoch follow the answers; a test may set them."""

    def __init__(self, wire: Wire, transactional_id: str = "t") -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1

    async def find_coordinator(self) -> None:
        """Return when the coordinator serves this id: it may have to be made, and to load the id's partition."""
        while True:
            request = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
            [row] = (await self.wire.ask(request, 6)).coordinators
            if row.error_code == ErrorCode.NONE:
                break
            assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        while (await self.describe()).error_code in _RETRIABLE:
            pass

    async def start(self, timeout_ms: int = 60_000, version: int = 5) -> None:
        """Find the coordinator and initialize the id, which may abort an open transaction."""
        await self.find_coordinator()
        while (code := await self.initialize(timeout_ms, version)) in _RETRIABLE:
            pass
        assert code is ErrorCode.NONE

    async def initialize(self, timeout_ms: int = 60_000, version: int = 5, **fields: Any) -> ErrorCode:
        request = InitProducerIdRequest(self.transactional_id, timeout_ms, **fields)
        response = await self.wire.ask(request, version)
        if response.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return ErrorCode(response.error_code)

    async def add(self, topics: dict[str, list[int]], version: int = 3) -> dict[tuple[str, int], ErrorCode]:
        """Send AddPartitionsToTxn as a producer; return the codes by partition."""
        rows = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
        request = AddPartitionsToTxnRequest([], self.transactional_id, self.producer_id, self.epoch, rows)
        response = await self.wire.ask(request, version)
        return _codes(response.results_by_topic_v3_and_below)

    async def add_as_broker(
        self, topics: dict[str, list[int]], version: int = 5, *, verify_only: bool = False
    ) -> dict[tuple[str, int], ErrorCode]:
        """Send AddPartitionsToTxn as the leader of the partitions."""
        rows = [AddPartitionsToTxnTopic(name, indexes) for name, indexes in topics.items()]
        transaction = AddPartitionsToTxnTransaction(
            self.transactional_id, self.producer_id, self.epoch, verify_only, rows
        )
        response = await self.wire.ask(AddPartitionsToTxnRequest([transaction]), version)
        assert response.error_code == ErrorCode.NONE
        [result] = response.results_by_transaction
        assert result.transactional_id == self.transactional_id
        return _codes(result.topic_results)

    async def add_offsets(self, group_id: str, version: int = 3) -> ErrorCode:
        request = AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, group_id)
        return ErrorCode((await self.wire.ask(request, version)).error_code)

    async def end(self, *, commit: bool, version: int = 5) -> ErrorCode:
        """Send EndTxn once. From version 5 on the answer's id and epoch are those of the next transaction."""
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, commit)
        response = await self.wire.ask(request, version)
        if version >= 5 and response.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return ErrorCode(response.error_code)

    def describe_request(self) -> DescribeTransactionsRequest:
        return DescribeTransactionsRequest([self.transactional_id])

    async def describe(self) -> TransactionState:
        [row] = (await self.wire.ask(self.describe_request(), 0)).transaction_states
        assert isinstance(row, TransactionState)
        return row


_RETRIABLE = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def _codes(topics: list[Any]) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, row.partition_index): ErrorCode(row.partition_error_code)
        for topic in topics
        for row in topic.results_by_partition
    }

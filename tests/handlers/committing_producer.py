"""A transactional producer that commits offsets of a group, one request at a time."""

from __future__ import annotations

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from odradek.protocol.messages.end_txn import EndTxnRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.wire import Wire

LAST_VERSION_BEFORE_ADDING = 4
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
Rows = dict[tuple[str, int], ErrorCode]

_RETRIED = (
    CONCURRENT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class CommittingProducer:
    """A transactional producer, request by request, that commits offsets of a group."""

    def __init__(self, wire: Wire, group_id: str) -> None:
        self.wire = wire
        self.group_id = group_id
        self.transactional_id = f"of-{group_id}"
        self.producer_id = self.epoch = -1

    async def init(self) -> None:
        """Begin, or fence an earlier producer of the same id."""
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.transactional_id])
        while (await self.wire.ask(find, 4)).coordinators[0].error_code:
            pass
        while (answer := await self.wire.ask(InitProducerIdRequest(self.transactional_id, 60_000), 4)).error_code:
            assert answer.error_code in _RETRIED
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def add_offsets(self) -> None:
        request = AddOffsetsToTxnRequest(self.transactional_id, self.producer_id, self.epoch, self.group_id)
        while (code := (await self.wire.ask(request, 3)).error_code) == CONCURRENT:
            pass
        assert code == ErrorCode.NONE

    def request(self, offsets: dict[tuple[str, int], int], metadata: str = "note", **fields: Any) -> Any:
        """Return a request with offsets by topic and partition; `fields` are the request's."""
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            row = TxnOffsetCommitRequestPartition(index, offset, committed_metadata=metadata)
            topics.setdefault(topic, []).append(row)
        return TxnOffsetCommitRequest(
            **{
                "transactional_id": self.transactional_id,
                "group_id": self.group_id,
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "topics": [TxnOffsetCommitRequestTopic(name, rows) for name, rows in topics.items()],
                **fields,
            }
        )

    async def commit(self, version: int, offsets: dict[tuple[str, int], int], **fields: Any) -> Rows:
        """Commit the offsets of `request`."""
        answer = await self.wire.ask(self.request(offsets, **fields), version)
        return {
            (topic.name, row.partition_index): ErrorCode(row.error_code)
            for topic in answer.topics
            for row in topic.partitions
        }

    async def commit_one(self, version: int, offset: int = 5, **fields: Any) -> ErrorCode:
        """Commit partition 0 of `t`, again while the markers of the transaction before it are written."""
        code = CONCURRENT
        while code == CONCURRENT:
            code = (await self.commit(version, {("t", 0): offset}, **fields))["t", 0]
        return code

    async def end(self, version: int = 3, *, committed: bool = True) -> None:
        """End the transaction. From version 5 on the producer goes on with the epoch in the answer."""
        request = EndTxnRequest(self.transactional_id, self.producer_id, self.epoch, committed)
        answer = await self.wire.ask(request, version)
        assert answer.error_code == ErrorCode.NONE
        if version > LAST_VERSION_BEFORE_ADDING:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    async def read(self, *, stable: bool = True) -> int | ErrorCode:
        """Fetch the offset of partition 0 of `t`."""
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(self.group_id, topics=topics)]
        [group] = (await self.wire.ask(OffsetFetchRequest(groups=groups, require_stable=stable), 8)).groups
        [row] = group.topics[0].partitions
        return ErrorCode(row.error_code) if row.error_code else row.committed_offset

    async def read_stable(self) -> int | ErrorCode:
        """Fetch the offset when no transaction may change it: Apache Kafka writes markers after its answer."""
        while (found := await self.read()) == ErrorCode.UNSTABLE_OFFSET_COMMIT:
            pass
        return found

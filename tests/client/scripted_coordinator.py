"""The transaction coordinator of a scripted network: ids and epochs as Kafka assigns them, in memory.

It does not write markers. `level` is the finalized transaction.version; with 2 each end of a transaction raises the
epoch, and an end with the epoch before is a retry.
"""

from __future__ import annotations

from typing import Any

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.find_coordinator import Coordinator as Found
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from odradek.protocol.schema import Message

APIS = ("FindCoordinator", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")


class TransactionCoordinator:
    """One transactional id at a time. `ended` has the result of each transaction: True for a commit."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.epoch = -1
        self.producer_id = 7
        self.is_fenced = False
        self.ended: list[bool] = []

    def fence(self) -> None:
        """Let another producer have the transactional id."""
        self.epoch += 1
        self.is_fenced = True

    def time_out(self) -> None:
        """Abort the open transaction and fence its producer, as after its timeout."""
        self.epoch += 1
        self.ended.append(False)

    def serve(self, node_id: int, request: Any) -> Message:
        match request:
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(
                    coordinators=[Found(key, node_id, f"broker{node_id}", 9092) for key in request.coordinator_keys]
                )
            case InitProducerIdRequest():
                return self._init(request)
            case AddPartitionsToTxnRequest():
                error = self._check(request.v3_and_below_producer_epoch)
                return AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=[
                        AddPartitionsToTxnTopicResult(
                            topic.name, [AddPartitionsToTxnPartitionResult(index, error) for index in topic.partitions]
                        )
                        for topic in request.v3_and_below_topics
                    ]
                )
            case AddOffsetsToTxnRequest():
                return AddOffsetsToTxnResponse(error_code=self._check(request.producer_epoch))
            case TxnOffsetCommitRequest():
                return offsets_answer(request, ErrorCode.NONE)
            case EndTxnRequest():
                return self._end(request)
        raise AssertionError(f"the scripted coordinator does not serve {request}")

    def _init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        if request.producer_id >= 0 and (self.is_fenced or request.producer_epoch < self.epoch - 1):
            return InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if request.producer_epoch < 0 or request.producer_epoch == self.epoch:
            self.epoch += 1
        return InitProducerIdResponse(producer_id=self.producer_id, producer_epoch=self.epoch)

    def _check(self, epoch: int) -> ErrorCode:
        return ErrorCode.NONE if epoch == self.epoch else ErrorCode.PRODUCER_FENCED

    def _end(self, request: EndTxnRequest) -> EndTxnResponse:
        is_retry = self.level == 2 and request.producer_epoch == self.epoch - 1
        if is_retry and self.ended and not self.is_fenced:
            if request.committed is not self.ended[-1]:
                return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
            return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)
        error = self._check(request.producer_epoch)
        if error:
            return EndTxnResponse(error_code=error)
        self.ended.append(request.committed)
        if self.level < 2:
            return EndTxnResponse()
        self.epoch += 1
        return EndTxnResponse(producer_id=self.producer_id, producer_epoch=self.epoch)


def offsets_answer(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The response to TxnOffsetCommit with this error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name, [TxnOffsetCommitResponsePartition(row.partition_index, code) for row in topic.partitions]
            )
            for topic in request.topics
        ]
    )

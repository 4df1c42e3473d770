"""TxnOffsetCommit (28), versions 0–5: commit offsets as a part of a producer's transaction.

The offsets are pending until the marker of the transaction; OffsetFetch with `require_stable` answers
UNSTABLE_OFFSET_COMMIT for them. What is checked, in this order, and the error of the rows:

- The client has the rights to write to the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED), and to read the
  group (GROUP_AUTHORIZATION_FAILED) and the topic (TOPIC_AUTHORIZATION_FAILED, of its rows only).
- The topic and the partition exist: UNKNOWN_TOPIC_OR_PARTITION. The other rows go on.
- There is a group id: INVALID_GROUP_ID.
- `__consumer_offsets` exists: COORDINATOR_NOT_AVAILABLE.
- The group is coordinated here: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS (before version 2
  COORDINATOR_NOT_AVAILABLE, because those clients stop at the other one).
- No newer epoch of the producer is known here: INVALID_PRODUCER_EPOCH.
- The group's partition of `__consumer_offsets` is in the transaction. From version 5 on the coordinator of the
  transaction adds it (KIP-890), for earlier versions it looks whether AddOffsetsToTxn did: TRANSACTION_ABORTABLE,
  before version 4 INVALID_TXN_STATE; INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, CONCURRENT_TRANSACTIONS. An
  empty transactional id is INVALID_REQUEST. If that coordinator cannot be reached, COORDINATOR_LOAD_IN_PROGRESS. It is
  not asked while the transaction is open here.
- The metadata is not longer than offset.metadata.max.bytes: OFFSET_METADATA_TOO_LARGE. The other rows go on.
- The group accepts the member, named from version 3 on (KIP-447): UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
  FENCED_INSTANCE_ID.
- The producer's epoch is the newest: INVALID_PRODUCER_EPOCH; the transaction did not end while the coordinator
  verified it: INVALID_TXN_STATE.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import NamedTuple, cast

from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.offsets.committed_offsets import NO_EXPIRY, metadata_length
from odradek.broker.coordinator.offsets.events import CommitOffsetsInTransaction, refuse_commit
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch
from odradek.broker.coordinator.runtime.partition_writer import as_coordinator_error
from odradek.broker.coordinator.transactions.transaction_coordinator import PartitionErrors
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check, refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.broker.storage.producers.verification_state import IN_TRANSACTION, Verification
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_FIRST_VERSION_THAT_ADDS_THE_PARTITION = 5
_FIRST_VERSION_WITH_ABORTABLE_ERRORS = 4
_FIRST_VERSION_WITH_LOAD_IN_PROGRESS = 2
_FIRST_SEQUENCE = 0  # that of every batch of `__consumer_offsets`
_NOT_WRITTEN = -1
_REFUSED_HERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

Answer = TxnOffsetCommitResponse | Awaitable[TxnOffsetCommitResponse]


def handle(services: Services, context: RequestContext, request: TxnOffsetCommitRequest) -> Steps[Answer]:
    check(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    response = TxnOffsetCommitResponse(topics=[])
    commits: dict[tuple[str, int], CommittedOffset] = {}  # the last one counts for a partition that is named twice
    now_ms = services.clock.time_ms()
    longest = services.config.offset_metadata_max_bytes
    is_decided = True
    for wanted in request.topics:
        yield
        topic = services.metadata.image.topics.get(wanted.name)
        refused = refusal_of(services, context, Operation.READ, ResourceType.TOPIC, wanted.name)
        rows = []
        for partition in wanted.partitions:
            yield
            code = ErrorCode.NONE
            if refused is not None:
                code = refused.code
            elif topic is None or topic.partition(partition.partition_index) is None:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif metadata_length(partition.committed_metadata or "") > longest:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                commits[wanted.name, partition.partition_index] = _committed(partition, now_ms, topic.topic_id)
            is_decided = is_decided and code in _REFUSED_HERE
            rows.append(TxnOffsetCommitResponsePartition(partition.partition_index, code))
        if rows:
            response.topics.append(TxnOffsetCommitResponseTopic(wanted.name, rows))
    if is_decided:
        return response  # neither the transaction nor the group has anything to decide
    offsets = [(*key, committed) for key, committed in commits.items()]
    return _Commit(services, context.api_version, request, offsets, response).answer()


def error_response(request: TxnOffsetCommitRequest, code: ErrorCode, message: str) -> TxnOffsetCommitResponse:
    topics = [
        TxnOffsetCommitResponseTopic(
            topic.name,
            [TxnOffsetCommitResponsePartition(partition.partition_index, code) for partition in topic.partitions],
        )
        for topic in request.topics
    ]
    return TxnOffsetCommitResponse(topics=topics)


class _Commit(NamedTuple):
    """A commit of partitions that exist: verified by the transaction's coordinator, then given to the group."""

    services: Services
    version: int
    request: TxnOffsetCommitRequest
    commits: list[tuple[str, int, CommittedOffset]]
    response: TxnOffsetCommitResponse

    def answer(self) -> Answer:
        """Return the response: at once if the transaction's coordinator is here and the append ends at once."""
        try:
            begun = [self._begin_verification()]
            errors = None if begun[0] in (None, IN_TRANSACTION) else self._verify(begun)
            if errors is not None and not isinstance(errors, Mapping):
                return self._answer_later(begun, errors)
            committed = self._commit(begun[0], errors)
        except KafkaError as error:
            return self._refuse(error)
        return self._answer_when_committed(committed) if isinstance(committed, asyncio.Future) else committed

    async def _answer_later(
        self, begun: list[Verification | None], errors: Awaitable[PartitionErrors]
    ) -> TxnOffsetCommitResponse:
        try:
            found = await errors
            committed = self._commit(begun[0], found)
            return await committed if isinstance(committed, asyncio.Future) else committed
        except KafkaError as error:
            return self._refuse(error)

    async def _answer_when_committed(
        self, committed: asyncio.Future[TxnOffsetCommitResponse]
    ) -> TxnOffsetCommitResponse:
        try:
            return await committed
        except KafkaError as error:
            return self._refuse(error)

    def _begin_verification(self) -> Verification | None:
        """Return the verification to pass to the append; None if it needs none.

        Raises KafkaError if the group has no id or is not coordinated here, or the epoch is not the newest.
        """
        services, request = self.services, self.request
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        is_verified = self._adds or services.transaction_verifier.is_enabled
        if is_verified and CONSUMER_OFFSETS not in services.metadata.image.topics:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{CONSUMER_OFFSETS} does not exist yet")
        services.groups.shard_of(request.group_id)
        if not is_verified:
            return None
        producers = services.partitions.get(*self._group_partition).log.producers
        begun = producers.begin_verification(
            request.producer_id, request.producer_epoch, _FIRST_SEQUENCE, services.clock.time_ms()
        )
        return IN_TRANSACTION if begun is None else begun

    def _verify(self, begun: list[Verification | None]) -> PartitionErrors | Awaitable[PartitionErrors]:
        """Ask the coordinator; `begun` gets the verification of each retry instead of the one before."""
        request = self.request

        def begin_again() -> None:
            begun[0] = self._begin_verification()

        return self.services.transaction_verifier.verify(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            [self._group_partition],
            begin_again,
            adds=self._adds,
        )

    def _commit(
        self, verification: Verification | None, errors: PartitionErrors | None
    ) -> TxnOffsetCommitResponse | asyncio.Future[TxnOffsetCommitResponse]:
        error = None if errors is None else errors[self._group_partition]
        if error is not None:
            raise error
        request = self.request
        committer = Committer(
            request.member_id, request.group_instance_id, request.generation_id, self.version, is_transactional=True
        )
        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        event = CommitOffsetsInTransaction(
            PendingReply(), committer, self.commits, self.response, producer, verification
        )
        return cast(
            "TxnOffsetCommitResponse | asyncio.Future[TxnOffsetCommitResponse]",
            self.services.groups.submit(request.group_id, event),
        )

    @property
    def _adds(self) -> bool:
        return self.version >= _FIRST_VERSION_THAT_ADDS_THE_PARTITION

    @property
    def _group_partition(self) -> tuple[str, int]:
        return CONSUMER_OFFSETS, self.services.groups.partition_of(self.request.group_id)

    def _refuse(self, error: KafkaError) -> TxnOffsetCommitResponse:
        refuse_commit(self.response, _code(error, self.version))
        return self.response


def _code(error: KafkaError, version: int) -> ErrorCode:
    """Return the code as clients of this version understand it."""
    code = as_coordinator_error(error).code
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _FIRST_VERSION_WITH_ABORTABLE_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _FIRST_VERSION_WITH_LOAD_IN_PROGRESS:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE  # the other one is fatal to them (KAFKA-7296)
    return code


def _committed(partition: TxnOffsetCommitRequestPartition, now_ms: int, topic_id: bytes) -> CommittedOffset:
    return CommittedOffset(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        NO_EXPIRY,
        topic_id,
        _NOT_WRITTEN,
    )

"""The events of committed offsets: commits, in transactions too, OffsetDelete, DeleteGroups, expiration, topics."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from odradek.broker.coordinator.group_type import Committer, Group
from odradek.broker.coordinator.offsets.committed_offsets import CommittedOffsets, commit_record
from odradek.broker.coordinator.offsets.deleted_topics import OfDeleted
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.coordinator.runtime.events import Effects, Event, ProducerIdAndEpoch, TimerKey
from odradek.broker.storage.producers.verification_state import Verification
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_groups import DeletableGroupResult
from odradek.protocol.messages.offset_commit import OffsetCommitResponse
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

_FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
_DECIDED_BY_THE_GROUP = (ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE)


class OffsetContext(NamedTuple):
    """The group of an offset event, None if there is none, and the offsets of all groups of its partition."""

    group_id: str
    group: Group | None
    offsets: CommittedOffsets
    now_ms: int


class OffsetEvent(Event, frozen=True):
    """An event that reads or changes the committed offsets of a group, whatever its type."""

    @abstractmethod
    def effects(self, context: OffsetContext) -> Effects:
        """Return the effects; state changes only when the records are replayed. Raises KafkaError."""


class CommitOffsets(OffsetEvent, frozen=True):
    """OffsetCommit. `commits` has the offsets to commit, `response` a row for every partition of the request."""

    committer: Committer
    commits: list[tuple[str, int, CommittedOffset]]
    response: OffsetCommitResponse

    def effects(self, context: OffsetContext) -> Effects:
        effects = Effects(replies=[(self.pending_reply, self.response)])
        try:
            effects.timers = self._check(context)
        except KafkaError as error:
            refuse_commit(self.response, error.code)
        else:
            effects.records = [
                commit_record(context.group_id, topic, index, each) for topic, index, each in self.commits
            ]
        return effects

    def _check(self, context: OffsetContext) -> dict[TimerKey, int | None]:
        if context.group is not None:
            return context.group.check_commit(self.committer, [(topic, index) for topic, index, _ in self.commits])
        if self.committer.generation_id >= 0:
            has_code = self.committer.api_version >= _FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND
            code = ErrorCode.GROUP_ID_NOT_FOUND if has_code else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(code, f"there is no group {context.group_id}")
        return {}


class CommitOffsetsInTransaction(OffsetEvent, frozen=True):
    """TxnOffsetCommit: as `CommitOffsets`, but the offsets count when the producer's transaction is committed.

    The group's members are checked as by KIP-447: a commit of an earlier generation is refused, whichever producer
    makes it. A client may also name neither member nor generation.
    """

    committer: Committer
    commits: list[tuple[str, int, CommittedOffset]]
    response: TxnOffsetCommitResponse
    producer: ProducerIdAndEpoch
    verification: Verification | None = None

    def effects(self, context: OffsetContext) -> Effects:
        effects = Effects(replies=[(self.pending_reply, self.response)])
        try:
            self._check(context)
        except KafkaError as error:
            stale = error.code is ErrorCode.STALE_MEMBER_EPOCH  # which producers do not know
            refuse_commit(self.response, ErrorCode.ILLEGAL_GENERATION if stale else error.code)
        else:
            effects.producer = self.producer
            effects.verification = self.verification
            effects.records = [
                commit_record(context.group_id, topic, index, each) for topic, index, each in self.commits
            ]
        return effects

    def _check(self, context: OffsetContext) -> None:
        if context.group is not None:
            context.group.check_commit(self.committer, [(topic, index) for topic, index, _ in self.commits])
        elif self.committer.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {context.group_id}")


def refuse_commit(response: OffsetCommitResponse | TxnOffsetCommitResponse, code: ErrorCode) -> None:
    """Set the error of every row but those of partitions that do not exist."""
    for topic in response.topics:
        for row in topic.partitions:
            if row.error_code in _DECIDED_BY_THE_GROUP:
                row.error_code = code


class DeleteOffsets(OffsetEvent, frozen=True):
    """OffsetDelete. `topics` has the partitions that exist, `response` the rows of the others."""

    topics: list[OffsetDeleteRequestTopic]
    response: OffsetDeleteResponse

    def effects(self, context: OffsetContext) -> Effects:
        group_id, group, offsets, _ = context
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        group.check_offset_delete()
        effects = Effects(replies=[(self.pending_reply, self.response)])
        answered = {topic.name: topic for topic in self.response.topics}
        for topic in self.topics:
            indexes = [partition.partition_index for partition in topic.partitions]
            code = ErrorCode.NONE
            if group.is_subscribed_to(topic.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                effects.records += offsets.tombstones_of_partitions(group_id, topic.name, indexes)
            rows = [OffsetDeleteResponsePartition(index, code) for index in indexes]
            if topic.name in answered:
                answered[topic.name].partitions += rows
            else:
                self.response.topics.append(OffsetDeleteResponseTopic(topic.name, rows))
        return effects


class DeleteGroup(OffsetEvent, frozen=True):
    """One group of a DeleteGroups request."""

    def effects(self, context: OffsetContext) -> Effects:
        group_id, group, offsets, _ = context
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        group.check_delete()
        return Effects(
            replies=[(self.pending_reply, DeletableGroupResult(group_id))],
            records=[*offsets.tombstones_of_group(group_id), *group.tombstones()],
        )


class ExpireOffsets(OffsetEvent, frozen=True):
    """The deletion of offsets whose retention is over, and of a group that has neither members nor offsets.

    With them go those of deleted topics whose deletion this coordinator has missed.
    """

    retention_ms: int
    is_of_deleted: OfDeleted

    def effects(self, context: OffsetContext) -> Effects:
        _, group, offsets, now_ms = context
        if group is None:
            return Effects()
        records, nothing_left = offsets.expired(group, now_ms, self.retention_ms, self.is_of_deleted)
        if nothing_left and group.is_empty:
            records += group.tombstones()
        return Effects(records=records)


class TopicsDeleted(OffsetEvent, frozen=True):
    """Topics were deleted, so their committed and pending offsets are deleted, too."""

    topics: frozenset[str]

    def effects(self, context: OffsetContext) -> Effects:
        return Effects(records=context.offsets.tombstones_of_topics(context.group_id, self.topics))

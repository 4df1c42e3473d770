"""What clients ask of a group's committed offsets, as events: each says what it makes of the group and its offsets."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

from odradek.broker.coordinator.group_type import Committer, Effects, Event, Group, TimerKey
from odradek.broker.coordinator.offsets.committed_offsets import CommittedOffset, CommittedOffsets, commit_record
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_groups import DeletableGroupResult
from odradek.protocol.messages.offset_commit import OffsetCommitResponse
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

_FIRST_COMMIT_VERSION_THAT_KNOWS_NO_GROUP = 9


class Situation(NamedTuple):
    """What such an event is told: the group, if there is one, and all offsets of its partition."""

    group_id: str
    group: Group | None
    offsets: CommittedOffsets
    now_ms: int


class OffsetEvent(Event, frozen=True):
    """An event that is not for the group's state machine alone."""

    @abstractmethod
    def effects(self, at: Situation) -> Effects:
        """What comes of it. Raises KafkaError. Nothing is changed yet: that is done by the records."""


class Commit(OffsetEvent, frozen=True):
    """OffsetCommit: `commits` are the offsets that may be committed, `response` has the rows of all."""

    committer: Committer
    commits: list[tuple[str, int, CommittedOffset]]
    response: OffsetCommitResponse

    def effects(self, at: Situation) -> Effects:
        effects = Effects(replies=[(self.pending_reply, self.response)])
        try:
            effects.timers = self._check(at)
        except KafkaError as error:
            self._refuse(error.code)
        else:
            effects.records = [commit_record(at.group_id, topic, index, each) for topic, index, each in self.commits]
        return effects

    def _check(self, at: Situation) -> dict[TimerKey, int | None]:
        if at.group is not None:
            return at.group.check_commit(self.committer, [(topic, index) for topic, index, _ in self.commits])
        if self.committer.generation_id >= 0:
            knows = self.committer.api_version >= _FIRST_COMMIT_VERSION_THAT_KNOWS_NO_GROUP
            code = ErrorCode.GROUP_ID_NOT_FOUND if knows else ErrorCode.ILLEGAL_GENERATION
            raise KafkaError(code, f"there is no group {at.group_id}")
        return {}

    def _refuse(self, code: ErrorCode) -> None:
        for topic in self.response.topics:
            for row in topic.partitions:
                if row.error_code in (ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE):
                    row.error_code = code


class DeleteOffsets(OffsetEvent, frozen=True):
    """OffsetDelete; `response` has the rows of partitions that do not exist; `topics` are the others."""

    topics: list[OffsetDeleteRequestTopic]
    response: OffsetDeleteResponse

    def effects(self, at: Situation) -> Effects:
        if at.group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {at.group_id}")
        at.group.check_offset_delete()
        effects = Effects(replies=[(self.pending_reply, self.response)])
        answered = {topic.name: topic for topic in self.response.topics}
        for topic in self.topics:
            named = [partition.partition_index for partition in topic.partitions]
            code = ErrorCode.NONE
            if at.group.is_subscribed_to(topic.name):
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                effects.records += at.offsets.tombstones_of_partitions(at.group_id, topic.name, named)
            rows = [OffsetDeleteResponsePartition(index, code) for index in named]
            if topic.name in answered:
                answered[topic.name].partitions += rows
            else:
                self.response.topics.append(OffsetDeleteResponseTopic(topic.name, rows))
        return effects


class DeleteGroup(OffsetEvent, frozen=True):
    """DeleteGroups, of one group."""

    def effects(self, at: Situation) -> Effects:
        if at.group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {at.group_id}")
        at.group.check_delete()
        return Effects(
            replies=[(self.pending_reply, DeletableGroupResult(at.group_id))],
            records=[*at.offsets.tombstones_of_group(at.group_id), *at.group.tombstones()],
        )


class Expire(OffsetEvent, frozen=True):
    """Now and then: take back what has expired, and a group without members that keeps nothing any more."""

    retention_ms: int

    def effects(self, at: Situation) -> Effects:
        if at.group is None:
            return Effects()
        records, nothing_left = at.offsets.expired(at.group, at.now_ms, self.retention_ms)
        if nothing_left and at.group.is_empty:
            records += at.group.tombstones()
        return Effects(records=records)


class ForgetTopics(OffsetEvent, frozen=True):
    """Topics were deleted: take back what was committed for them."""

    topics: frozenset[str]

    def effects(self, at: Situation) -> Effects:
        records = []
        for topic in self.topics & at.offsets.of_group(at.group_id).keys():
            records += at.offsets.tombstones_of_partitions(
                at.group_id, topic, list(at.offsets.of_group(at.group_id)[topic])
            )
        return Effects(records=records)

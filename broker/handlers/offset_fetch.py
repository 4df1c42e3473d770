"""OffsetFetch (9), versions 1–10: the committed offsets of groups.

Up to version 7 the request names one group, later versions (KIP-709) several, each with its own error; version 1 has no
error of the group and has it in every row. Null topics (from version 2 on) request all offsets that the group has
committed. A partition without a commit has offset -1 without an error, and so has every partition of a group that does
not exist. With `require_stable` (version 7, KIP-447) an offset that an open transaction may change is
UNSTABLE_OFFSET_COMMIT. From version 9 on a member of a group of the consumer protocol may send its id and epoch. In
version 10 topics have ids: UNKNOWN_TOPIC_ID. Offsets of a deleted topic of the same name are not returned.

Without the right to describe it a group is GROUP_AUTHORIZATION_FAILED, and a topic TOPIC_AUTHORIZATION_FAILED (by id
UNKNOWN_TOPIC_ID); where all offsets are requested, it is omitted. A group, topic or partition that is named twice has
one row (differs from Kafka: `request.repetitions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from odradek.broker.coordinator.group_shard import GroupCoordinatorShard
from odradek.broker.coordinator.offsets.deleted_topics import is_of_older
from odradek.broker.coordinator.offsets.offset_tables import CommittedOffset
from odradek.broker.metadata.image import TopicImage
from odradek.broker.request.context import RequestContext
from odradek.broker.request.repetitions import partitions_once
from odradek.broker.request.rights import allows_on_topic, check, refusal_of_topic
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.offset_fetch import (
    FIRST_VERSION_WITH_SEVERAL_GROUPS,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.protocol.schema import ZERO_UUID

_FIRST_VERSION_WITH_GROUP_ERROR = 2
_FIRST_VERSION_WITH_TOPIC_IDS = 10
_NO_OFFSET = -1


def handle(services: Services, context: RequestContext, request: OffsetFetchRequest) -> Steps[OffsetFetchResponse]:
    version = context.api_version
    if version >= FIRST_VERSION_WITH_SEVERAL_GROUPS:
        rows = []
        for wanted in (yield from _groups_once(request.groups)):
            yield
            rows.append((yield from _fetch_or_refuse(services, context, wanted, request)))
        return OffsetFetchResponse(groups=rows)
    group = yield from _fetch_or_refuse(services, context, _only_group(request), request)
    return _as_one_group(group)


def error_response(request: OffsetFetchRequest, code: ErrorCode, message: str) -> OffsetFetchResponse:
    rows = [
        OffsetFetchResponseGroup(each, [], code) for each in dict.fromkeys(group.group_id for group in request.groups)
    ]
    return OffsetFetchResponse(groups=rows, error_code=code)


class _Fetch(NamedTuple):
    """The look-up of the rows of one group."""

    services: Services
    context: RequestContext
    shard: GroupCoordinatorShard
    group_id: str
    exists: bool
    require_stable: bool
    by_id: bool

    def all_topics(self) -> Steps[list[OffsetFetchResponseTopics]]:
        found: list[OffsetFetchResponseTopics] = []
        if not self.exists:
            return found
        committed = self.shard.offsets.of_group(self.group_id)
        for name, partitions in [(name, tuple(partitions)) for name, partitions in committed.items()]:
            if not allows_on_topic(self.services, self.context, Operation.DESCRIBE, name):
                continue
            topic = self.services.metadata.image.topics.get(name)
            if topic is None and self.by_id:
                continue  # deleted: it has no id to return
            topic_id = ZERO_UUID if topic is None or not self.by_id else topic.topic_id
            living = []
            for index in partitions:
                yield
                if self._commit(name, topic, index) is not None:
                    living.append(index)
            if living:
                rows = yield from self._partitions(name, topic, living)
                found.append(OffsetFetchResponseTopics("" if self.by_id else name, topic_id, rows))
        return found

    def topic(self, wanted: OffsetFetchRequestTopics) -> Steps[OffsetFetchResponseTopics]:
        image = self.services.metadata.image
        topic = image.topics_by_id.get(wanted.topic_id) if self.by_id else image.topics.get(wanted.name)
        refused = refusal_of_topic(
            self.services, self.context, Operation.DESCRIBE, wanted.name, wanted.topic_id, by_id=self.by_id
        )
        if refused is not None:
            rows = [_row(index, refused.code) for index in wanted.partition_indexes]
        elif topic is None and self.by_id:
            rows = [_row(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in wanted.partition_indexes]
        else:
            name = wanted.name if topic is None else topic.name
            rows = yield from self._partitions(name, topic, wanted.partition_indexes)
        return OffsetFetchResponseTopics(wanted.name, wanted.topic_id, rows)

    def _partitions(
        self, name: str, topic: TopicImage | None, indexes: Sequence[int]
    ) -> Steps[list[OffsetFetchResponsePartitions]]:
        rows = []
        for index in indexes:
            rows.append(self._partition(name, topic, index))
            yield
        return rows

    def _partition(self, name: str, topic: TopicImage | None, index: int) -> OffsetFetchResponsePartitions:
        if self.require_stable and self.shard.offsets.is_pending(self.group_id, name, index):
            return _row(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        commit = self._commit(name, topic, index)
        if commit is None:
            return _row(index, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(index, commit.offset, commit.leader_epoch, commit.metadata)

    def _commit(self, name: str, topic: TopicImage | None, index: int) -> CommittedOffset | None:
        """Return the offset of a partition of the living topic, None if there is none."""
        commit = self.shard.offsets.get(self.group_id, name, index) if self.exists else None
        # Differs from Kafka before OffsetFetch 10: an offset of an older topic of that name is none of this one.
        return None if commit is None or is_of_older(commit, topic) else commit


def _fetch_or_refuse(
    services: Services, context: RequestContext, wanted: OffsetFetchRequestGroup, request: OffsetFetchRequest
) -> Steps[OffsetFetchResponseGroup]:
    version = context.api_version
    try:
        return (yield from _fetch(services, context, wanted, request.require_stable))
    except KafkaError as error:
        if version >= _FIRST_VERSION_WITH_GROUP_ERROR:
            return OffsetFetchResponseGroup(wanted.group_id, [], error.code)
        topics = []
        for topic in wanted.topics or ():
            rows = [_row(index, error.code) for index in topic.partition_indexes]
            topics.append(OffsetFetchResponseTopics(topic.name, ZERO_UUID, rows))
        return OffsetFetchResponseGroup(wanted.group_id, topics, ErrorCode.NONE)


def _fetch(
    services: Services, context: RequestContext, wanted: OffsetFetchRequestGroup, require_stable: bool
) -> Steps[OffsetFetchResponseGroup]:
    check(services, context, Operation.DESCRIBE, ResourceType.GROUP, wanted.group_id)
    by_id = context.api_version >= _FIRST_VERSION_WITH_TOPIC_IDS
    shard = services.groups.shard_of(wanted.group_id)
    group = shard.groups.get(wanted.group_id)
    if group is not None:
        group.check_fetch(wanted.member_id, wanted.member_epoch)
    fetch = _Fetch(services, context, shard, wanted.group_id, group is not None, require_stable, by_id)
    if wanted.topics is None:
        topics = yield from fetch.all_topics()
    else:
        topics = []
        named = (((topic.name, topic.topic_id), topic.partition_indexes) for topic in wanted.topics)
        for (name, topic_id), indexes in (yield from partitions_once(named)).items():
            yield
            topics.append((yield from fetch.topic(OffsetFetchRequestTopics(name, topic_id, [*indexes]))))
    return OffsetFetchResponseGroup(wanted.group_id, topics, ErrorCode.NONE)


def _groups_once(groups: list[OffsetFetchRequestGroup]) -> Steps[list[OffsetFetchRequestGroup]]:
    """Merge the groups that are named more than once: all offsets if one of them requests all, else those of each."""
    merged: dict[str, OffsetFetchRequestGroup] = {}
    for group in groups:
        yield
        first = merged.setdefault(group.group_id, group)
        if first is group or first.topics is None:
            continue
        if group.topics is None:
            first.topics = None
        else:
            first.topics += group.topics
    return list(merged.values())


def _row(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, _NO_OFFSET, -1, "", code)


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Convert a request up to version 7 to the form of version 8."""
    topics = request.topics
    if topics is None:
        return OffsetFetchRequestGroup(request.group_id, topics=None)
    wanted = [OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes) for topic in topics]
    return OffsetFetchRequestGroup(request.group_id, topics=wanted)


def _as_one_group(group: OffsetFetchResponseGroup) -> OffsetFetchResponse:
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    row.partition_index, row.committed_offset, row.committed_leader_epoch, row.metadata, row.error_code
                )
                for row in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=group.error_code)

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestTopics,
)
from odradek.protocol.varint import INT64_MAX
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import create
from tests.wire import Wire


def rows_of(*topics: str) -> list[OffsetCommitRequestTopic]:
    return [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, 7)]) for topic in topics]


@pytest.mark.parametrize("version", range(2, 10))
async def test_a_group_without_members_accepts_commits(committer: GroupMember, version: int) -> None:
    assert await committer.commit("t", 5, version, committed_metadata="note") == ErrorCode.NONE

    [topic] = (await committer.fetch(8)).topics
    [row] = topic.partitions
    assert (topic.name, row.partition_index, row.committed_offset, row.metadata) == ("t", 0, 5, "note")


@pytest.mark.usefixtures("only_here")  # in Apache Kafka the sum is negative, and the offset expires at once
async def test_the_longest_retention_never_expires(wire: Wire, committer: GroupMember) -> None:
    request = OffsetCommitRequest(committer.group_id, retention_time_ms=INT64_MAX, topics=rows_of("t"))
    [topic] = (await wire.ask(request, 2)).topics
    assert topic.partitions[0].error_code == ErrorCode.NONE

    [fetched] = (await committer.fetch(8)).topics
    assert fetched.partitions[0].committed_offset == 7


async def test_topics_have_ids_from_version_10_on(wire: Wire, committer: GroupMember) -> None:
    topic_id = await create(wire, "by-id")
    row = OffsetCommitRequestPartition(0, 9, committed_leader_epoch=2)
    request = OffsetCommitRequest(
        committer.group_id, topics=[OffsetCommitRequestTopic(topic_id=topic_id, partitions=[row])]
    )
    [committed] = (await wire.ask(request, 10)).topics
    assert (committed.topic_id, committed.partitions[0].error_code) == (topic_id, ErrorCode.NONE)

    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])]
    [fetched] = (await committer.fetch(10, wanted)).topics

    assert fetched.topic_id == topic_id
    assert [(each.committed_offset, each.committed_leader_epoch) for each in fetched.partitions] == [(9, 2), (-1, -1)]
    [everything] = (await committer.fetch(10)).topics
    assert (everything.topic_id, everything.partitions[0].committed_offset) == (topic_id, 9)


async def test_an_unknown_topic_fails_only_its_rows(wire: Wire, committer: GroupMember) -> None:
    request = OffsetCommitRequest(committer.group_id, topics=rows_of("missing", "t"))

    codes = {topic.name: topic.partitions[0].error_code for topic in (await wire.ask(request, 8)).topics}

    assert codes == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": ErrorCode.NONE}
    assert await committer.committed("t") == 7


async def test_an_unknown_partition_fails_only_its_row(wire: Wire, committer: GroupMember) -> None:
    rows = [OffsetCommitRequestPartition(index, 7) for index in (0, 3, -1)]
    request = OffsetCommitRequest(committer.group_id, topics=[OffsetCommitRequestTopic("t", partitions=rows)])

    [committed] = (await wire.ask(request, 8)).topics

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = {row.partition_index: row.error_code for row in committed.partitions}
    assert codes == {0: ErrorCode.NONE, 3: unknown, -1: unknown}
    [fetched] = (await committer.fetch(8)).topics
    assert [row.partition_index for row in fetched.partitions] == [0]


async def test_a_partition_of_an_unknown_id_is_refused(wire: Wire, committer: GroupMember) -> None:
    topic_id = await create(wire, "by-id")
    rows = [OffsetCommitRequestTopic(topic_id=topic_id, partitions=[OffsetCommitRequestPartition(1, 7)])]

    [committed] = (await wire.ask(OffsetCommitRequest(committer.group_id, topics=rows), 10)).topics

    assert committed.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_unknown_id_is_refused(wire: Wire, committer: GroupMember) -> None:
    unknown = bytes(range(16))
    topics = [OffsetCommitRequestTopic(topic_id=unknown, partitions=[OffsetCommitRequestPartition(0, 7)])]
    [committed] = (await wire.ask(OffsetCommitRequest(committer.group_id, topics=topics), 10)).topics
    assert committed.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    [fetched] = (await committer.fetch(10, [OffsetFetchRequestTopics(topic_id=unknown, partition_indexes=[0])])).topics
    assert (fetched.partitions[0].error_code, fetched.partitions[0].committed_offset) == (
        ErrorCode.UNKNOWN_TOPIC_ID,
        -1,
    )


async def test_metadata_has_a_limit(committer: GroupMember) -> None:
    assert await committer.commit("t", 5, committed_metadata="x" * 4096) == ErrorCode.NONE
    assert await committer.commit("t", 6, committed_metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await committer.commit("t", 6, committed_metadata="\U0001f600" * 2049) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await committer.committed("t") == 5


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
async def test_a_generation_of_an_unknown_group_is_refused(
    committer: GroupMember, version: int, code: ErrorCode
) -> None:
    committer.generation_id, committer.member_id = 3, "somebody"

    assert await committer.commit("t", 5, version) == code


async def test_a_commit_needs_a_member_and_its_generation(wire: Wire, committer: GroupMember) -> None:
    await committer.become_only_member()
    outsider = GroupMember(wire, committer.group_id)
    assert await outsider.commit("t", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    outsider.member_id, outsider.generation_id = "stranger", committer.generation_id
    assert await outsider.commit("t", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    outsider.member_id, outsider.generation_id = committer.member_id, committer.generation_id + 1
    assert await outsider.commit("t", 5) == ErrorCode.ILLEGAL_GENERATION
    assert await committer.commit("t", 5) == ErrorCode.NONE


async def test_commits_are_refused_during_a_rebalance(committer: GroupMember) -> None:
    await committer.join()

    assert await committer.commit("t", 5) == ErrorCode.REBALANCE_IN_PROGRESS


async def test_an_error_of_the_group_keeps_errors_of_topics(wire: Wire, committer: GroupMember) -> None:
    await committer.become_only_member()
    request = OffsetCommitRequest(committer.group_id, topics=rows_of("missing", "t"))

    codes = {topic.name: topic.partitions[0].error_code for topic in (await wire.ask(request, 8)).topics}

    assert codes == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": ErrorCode.UNKNOWN_MEMBER_ID}

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from odradek.protocol.varint import INT64_MAX
from tests.handlers.group_members import GroupMember, find_coordinator, new_group_id
from tests.handlers.requests import create
from tests.wire import Wire


@pytest.fixture
async def group(wire: Wire) -> GroupMember:
    """A client outside a new group with a coordinator; topic `t` exists."""
    group_id = new_group_id()
    await find_coordinator(wire, group_id)
    await create(wire, "t", 3)
    return GroupMember(wire, group_id)


def rows_of(*topics: str) -> list[OffsetCommitRequestTopic]:
    return [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, 7)]) for topic in topics]


@pytest.mark.parametrize("version", range(2, 10))
async def test_a_group_without_members_accepts_commits(group: GroupMember, version: int) -> None:
    assert await group.commit("t", 5, version, committed_metadata="note") == ErrorCode.NONE

    [topic] = (await group.fetch(8)).topics
    [row] = topic.partitions
    assert (topic.name, row.partition_index, row.committed_offset, row.metadata) == ("t", 0, 5, "note")


@pytest.mark.usefixtures("only_here")  # in Apache Kafka the sum is negative, and the offset expires at once
async def test_the_longest_retention_never_expires(wire: Wire, group: GroupMember) -> None:
    request = OffsetCommitRequest(group.group_id, retention_time_ms=INT64_MAX, topics=rows_of("t"))
    [topic] = (await wire.ask(request, 2)).topics
    assert topic.partitions[0].error_code == ErrorCode.NONE

    [fetched] = (await group.fetch(8)).topics
    assert fetched.partitions[0].committed_offset == 7


async def test_topics_have_ids_from_version_10_on(wire: Wire, group: GroupMember) -> None:
    topic_id = await create(wire, "by-id")
    row = OffsetCommitRequestPartition(0, 9, committed_leader_epoch=2)
    request = OffsetCommitRequest(
        group.group_id, topics=[OffsetCommitRequestTopic(topic_id=topic_id, partitions=[row])]
    )
    [committed] = (await wire.ask(request, 10)).topics
    assert (committed.topic_id, committed.partitions[0].error_code) == (topic_id, ErrorCode.NONE)

    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0, 1])]
    [fetched] = (await group.fetch(10, wanted)).topics

    assert fetched.topic_id == topic_id
    assert [(each.committed_offset, each.committed_leader_epoch) for each in fetched.partitions] == [(9, 2), (-1, -1)]
    [everything] = (await group.fetch(10)).topics
    assert (everything.topic_id, everything.partitions[0].committed_offset) == (topic_id, 9)


async def test_an_unknown_topic_fails_only_its_rows(wire: Wire, group: GroupMember) -> None:
    request = OffsetCommitRequest(group.group_id, topics=rows_of("missing", "t"))

    codes = {topic.name: topic.partitions[0].error_code for topic in (await wire.ask(request, 8)).topics}

    assert codes == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": ErrorCode.NONE}
    assert await group.committed("t") == 7


async def test_an_unknown_partition_fails_only_its_row(wire: Wire, group: GroupMember) -> None:
    rows = [OffsetCommitRequestPartition(index, 7) for index in (0, 3, -1)]
    request = OffsetCommitRequest(group.group_id, topics=[OffsetCommitRequestTopic("t", partitions=rows)])

    [committed] = (await wire.ask(request, 8)).topics

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = {row.partition_index: row.error_code for row in committed.partitions}
    assert codes == {0: ErrorCode.NONE, 3: unknown, -1: unknown}
    [fetched] = (await group.fetch(8)).topics
    assert [row.partition_index for row in fetched.partitions] == [0]


async def test_a_partition_of_an_unknown_id_is_refused(wire: Wire, group: GroupMember) -> None:
    topic_id = await create(wire, "by-id")
    rows = [OffsetCommitRequestTopic(topic_id=topic_id, partitions=[OffsetCommitRequestPartition(1, 7)])]

    [committed] = (await wire.ask(OffsetCommitRequest(group.group_id, topics=rows), 10)).topics

    assert committed.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_unknown_id_is_refused(wire: Wire, group: GroupMember) -> None:
    unknown = bytes(range(16))
    topics = [OffsetCommitRequestTopic(topic_id=unknown, partitions=[OffsetCommitRequestPartition(0, 7)])]
    [committed] = (await wire.ask(OffsetCommitRequest(group.group_id, topics=topics), 10)).topics
    assert committed.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    [fetched] = (await group.fetch(10, [OffsetFetchRequestTopics(topic_id=unknown, partition_indexes=[0])])).topics
    assert (fetched.partitions[0].error_code, fetched.partitions[0].committed_offset) == (
        ErrorCode.UNKNOWN_TOPIC_ID,
        -1,
    )


async def test_metadata_has_a_limit(group: GroupMember) -> None:
    assert await group.commit("t", 5, committed_metadata="x" * 4096) == ErrorCode.NONE
    assert await group.commit("t", 6, committed_metadata="x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await group.commit("t", 6, committed_metadata="\U0001f600" * 2049) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert await group.committed("t") == 5


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
async def test_a_generation_of_an_unknown_group_is_refused(group: GroupMember, version: int, code: ErrorCode) -> None:
    group.generation_id, group.member_id = 3, "somebody"

    assert await group.commit("t", 5, version) == code


async def test_a_commit_needs_a_member_and_its_generation(wire: Wire, group: GroupMember) -> None:
    await group.become_only_member()
    outsider = GroupMember(wire, group.group_id)
    assert await outsider.commit("t", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    outsider.member_id, outsider.generation_id = "stranger", group.generation_id
    assert await outsider.commit("t", 5) == ErrorCode.UNKNOWN_MEMBER_ID
    outsider.member_id, outsider.generation_id = group.member_id, group.generation_id + 1
    assert await outsider.commit("t", 5) == ErrorCode.ILLEGAL_GENERATION
    assert await group.commit("t", 5) == ErrorCode.NONE


async def test_commits_are_refused_during_a_rebalance(group: GroupMember) -> None:
    await group.join()

    assert await group.commit("t", 5) == ErrorCode.REBALANCE_IN_PROGRESS


async def test_an_error_of_the_group_keeps_errors_of_topics(wire: Wire, group: GroupMember) -> None:
    await group.become_only_member()
    request = OffsetCommitRequest(group.group_id, topics=rows_of("missing", "t"))

    codes = {topic.name: topic.partitions[0].error_code for topic in (await wire.ask(request, 8)).topics}

    assert codes == {"missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "t": ErrorCode.UNKNOWN_MEMBER_ID}


@pytest.mark.parametrize("version", range(1, 8))
async def test_the_older_form_fetches_one_group(wire: Wire, group: GroupMember, version: int) -> None:
    await group.commit("t", 5, committed_leader_epoch=3, committed_metadata="m")
    wanted = [OffsetFetchRequestTopic("t", [0, 2]), OffsetFetchRequestTopic("missing", [1])]

    response = await wire.ask(OffsetFetchRequest(group.group_id, wanted), version)

    assert response.error_code == ErrorCode.NONE
    rows = {(topic.name, row.partition_index): row for topic in response.topics for row in topic.partitions}
    assert [rows[key].committed_offset for key in [("t", 0), ("t", 2), ("missing", 1)]] == [5, -1, -1]
    assert [row.metadata for row in rows.values()] == ["m", "", ""]
    assert rows["t", 0].committed_leader_epoch == (3 if version >= 5 else -1)
    assert not any(row.error_code for row in rows.values())


@pytest.mark.parametrize("version", range(2, 8))
async def test_all_topics_are_fetched_if_none_is_named(wire: Wire, group: GroupMember, version: int) -> None:
    await group.commit("t", 5)

    response = await wire.ask(OffsetFetchRequest(group.group_id, None), version)

    assert [(topic.name, [row.committed_offset for row in topic.partitions]) for topic in response.topics] == [
        ("t", [5])
    ]


@pytest.mark.parametrize("version", range(8, 10))
async def test_several_groups_are_fetched_at_once(wire: Wire, group: GroupMember, version: int) -> None:
    await group.commit("t", 5)
    wanted = [OffsetFetchRequestGroup(group.group_id, topics=None), OffsetFetchRequestGroup("nobody", topics=None)]

    response = await wire.ask(OffsetFetchRequest(groups=wanted, require_stable=True), version)

    found = {row.group_id: (row.error_code, [topic.name for topic in row.topics]) for row in response.groups}
    assert found == {group.group_id: (ErrorCode.NONE, ["t"]), "nobody": (ErrorCode.NONE, [])}


def delete_request(group_id: str, *topics: str) -> OffsetDeleteRequest:
    rows = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)]) for topic in topics]
    return OffsetDeleteRequest(group_id, rows)


async def test_offsets_are_deleted(wire: Wire, group: GroupMember) -> None:
    await group.commit("t", 5)

    response = await wire.ask(delete_request(group.group_id, "t", "missing"), 0)

    assert response.error_code == ErrorCode.NONE
    codes = {topic.name: topic.partitions[0].error_code for topic in response.topics}
    assert codes == {"t": ErrorCode.NONE, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await group.committed("t") == -1


async def test_a_topic_with_known_and_unknown_partitions_has_one_row(wire: Wire, group: GroupMember) -> None:
    await group.commit("t", 5)
    rows = [OffsetDeleteRequestPartition(index) for index in (0, 3)]

    [topic] = (await wire.ask(OffsetDeleteRequest(group.group_id, [OffsetDeleteRequestTopic("t", rows)]), 0)).topics

    codes = {row.partition_index: row.error_code for row in topic.partitions}
    assert codes == {0: ErrorCode.NONE, 3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await group.committed("t") == -1


async def test_offsets_of_topics_that_a_member_reads_are_not_deleted(wire: Wire, group: GroupMember) -> None:
    await group.become_only_member()
    await group.commit("t", 5)

    response = await wire.ask(delete_request(group.group_id, "t"), 0)

    assert response.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert await group.committed("t") == 5


async def test_offsets_of_other_protocols_are_not_deleted_while_there_are_members(
    wire: Wire, group: GroupMember
) -> None:
    await group.become_only_member(protocol_type="connect")

    response = await wire.ask(delete_request(group.group_id, "t"), 0)

    assert (response.error_code, response.topics) == (ErrorCode.NON_EMPTY_GROUP, [])


async def test_deleting_offsets_of_an_unknown_group_is_an_error(wire: Wire, group: GroupMember) -> None:
    response = await wire.ask(delete_request("nobody", "t"), 0)

    assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])

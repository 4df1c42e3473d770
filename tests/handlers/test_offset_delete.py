from __future__ import annotations

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.handlers.group_members import GroupMember
from tests.wire import Wire


def delete_request(group_id: str, *topics: str) -> OffsetDeleteRequest:
    rows = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)]) for topic in topics]
    return OffsetDeleteRequest(group_id, rows)


async def test_offsets_are_deleted(wire: Wire, committer: GroupMember) -> None:
    await committer.commit("t", 5)

    response = await wire.ask(delete_request(committer.group_id, "t", "missing"), 0)

    assert response.error_code == ErrorCode.NONE
    codes = {topic.name: topic.partitions[0].error_code for topic in response.topics}
    assert codes == {"t": ErrorCode.NONE, "missing": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await committer.committed("t") == -1


async def test_a_topic_with_known_and_unknown_partitions_has_one_row(wire: Wire, committer: GroupMember) -> None:
    await committer.commit("t", 5)
    rows = [OffsetDeleteRequestPartition(index) for index in (0, 3)]

    [topic] = (await wire.ask(OffsetDeleteRequest(committer.group_id, [OffsetDeleteRequestTopic("t", rows)]), 0)).topics

    codes = {row.partition_index: row.error_code for row in topic.partitions}
    assert codes == {0: ErrorCode.NONE, 3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert await committer.committed("t") == -1


async def test_offsets_of_topics_that_a_member_reads_are_not_deleted(wire: Wire, committer: GroupMember) -> None:
    await committer.become_only_member()
    await committer.commit("t", 5)

    response = await wire.ask(delete_request(committer.group_id, "t"), 0)

    assert response.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert await committer.committed("t") == 5


async def test_offsets_of_other_protocols_are_not_deleted_while_there_are_members(
    wire: Wire, committer: GroupMember
) -> None:
    await committer.become_only_member(protocol_type="connect")

    response = await wire.ask(delete_request(committer.group_id, "t"), 0)

    assert (response.error_code, response.topics) == (ErrorCode.NON_EMPTY_GROUP, [])


async def test_deleting_offsets_of_an_unknown_group_is_an_error(wire: Wire, committer: GroupMember) -> None:
    response = await wire.ask(delete_request("nobody", "t"), 0)

    assert (response.error_code, response.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.handlers.group_members import GroupMember
from tests.wire import Wire


@pytest.mark.parametrize("version", range(2))
async def test_a_classic_group_is_not_found_among_those_of_the_consumer_protocol(
    wire: Wire, only_member: GroupMember, version: int
) -> None:
    """Java's admin client sends ConsumerGroupDescribe first, and DescribeGroups after this error."""
    [group] = (await wire.ask(ConsumerGroupDescribeRequest([only_member.group_id]), version)).groups

    assert (group.error_code, group.members) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    assert group.error_message == f"Group {only_member.group_id} is not a consumer group."

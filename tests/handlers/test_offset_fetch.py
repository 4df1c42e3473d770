from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from tests.handlers.group_members import GroupMember
from tests.wire import Wire


@pytest.mark.parametrize("version", range(1, 8))
async def test_the_older_form_fetches_one_group(wire: Wire, committer: GroupMember, version: int) -> None:
    await committer.commit("t", 5, committed_leader_epoch=3, committed_metadata="m")
    wanted = [OffsetFetchRequestTopic("t", [0, 2]), OffsetFetchRequestTopic("missing", [1])]

    response = await wire.ask(OffsetFetchRequest(committer.group_id, wanted), version)

    assert response.error_code == ErrorCode.NONE
    rows = {(topic.name, row.partition_index): row for topic in response.topics for row in topic.partitions}
    assert [rows[key].committed_offset for key in [("t", 0), ("t", 2), ("missing", 1)]] == [5, -1, -1]
    assert [row.metadata for row in rows.values()] == ["m", "", ""]
    assert rows["t", 0].committed_leader_epoch == (3 if version >= 5 else -1)
    assert not any(row.error_code for row in rows.values())


@pytest.mark.parametrize("version", range(2, 8))
async def test_all_topics_are_fetched_if_none_is_named(wire: Wire, committer: GroupMember, version: int) -> None:
    await committer.commit("t", 5)

    response = await wire.ask(OffsetFetchRequest(committer.group_id, None), version)

    assert [(topic.name, [row.committed_offset for row in topic.partitions]) for topic in response.topics] == [
        ("t", [5])
    ]


@pytest.mark.parametrize("version", range(8, 10))
async def test_several_groups_are_fetched_at_once(wire: Wire, committer: GroupMember, version: int) -> None:
    await committer.commit("t", 5)
    wanted = [OffsetFetchRequestGroup(committer.group_id, topics=None), OffsetFetchRequestGroup("nobody", topics=None)]

    response = await wire.ask(OffsetFetchRequest(groups=wanted, require_stable=True), version)

    found = {row.group_id: (row.error_code, [topic.name for topic in row.topics]) for row in response.groups}
    assert found == {committer.group_id: (ErrorCode.NONE, ["t"]), "nobody": (ErrorCode.NONE, [])}

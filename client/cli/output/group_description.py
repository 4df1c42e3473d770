"""The output of `groups describe`: state, members with their partitions, committed offsets and lag."""

from __future__ import annotations

from typing import Any

from odradek.client.admin.results import GroupDescription, MemberDescription, PartitionLag, Results
from odradek.client.cli.output.tables import print_rows
from odradek.client.record import TopicPartition
from odradek.protocol.plural import pluralize

_PARTITION_COLUMNS = (
    *("group", "topic", "partition", "current_offset", "log_end_offset", "lag"),
    *("consumer_id", "host", "client_id"),
)
_MEMBER_COLUMNS = ("group", "consumer_id", "group_instance_id", "host", "client_id", "partitions", "assignment")


def document_of(group: GroupDescription, lags: Results[TopicPartition, PartitionLag]) -> dict[str, Any]:
    """Return the group as its JSON document."""
    owners = {partition: member for member in group.members for partition in member.assignment}
    return {
        "group": group.group_id,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "epoch": group.epoch if group.epoch >= 0 else None,
        "coordinator": group.coordinator,
        "members": [_member(group.group_id, member) for member in group.members],
        "partitions": [
            _partition(group.group_id, partition, lag, owners.get(partition))
            for partition, lag in lags.succeeded.items()
        ],
    }


def _member(group: str, member: MemberDescription) -> dict[str, Any]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(member.assignment):
        topics.setdefault(topic, []).append(partition)
    return {
        "group": group,
        "consumer_id": member.member_id,
        "group_instance_id": member.instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "partitions": len(member.assignment),
        "assignment": [f"{topic}({','.join(map(str, numbers))})" for topic, numbers in topics.items()],
    }


def _partition(
    group: str, partition: TopicPartition, lag: PartitionLag, owner: MemberDescription | None
) -> dict[str, Any]:
    return {
        "group": group,
        "topic": partition.topic,
        "partition": partition.partition,
        "current_offset": lag.committed,
        "log_end_offset": lag.end,
        "lag": lag.lag,
        "consumer_id": owner.member_id if owner else None,
        "host": owner.host if owner else None,
        "client_id": owner.client_id if owner else None,
    }


def print_group(document: dict[str, Any], *, with_members: bool, is_first: bool) -> None:
    """Print a group as a heading and a table: its partitions, or its members."""
    if not is_first:
        print()
    assignor = f", assigned by {document['assignor']}" if document["assignor"] else ""
    members = pluralize(len(document["members"]), "member")
    print(
        f"{document['group']}  {document['state']}, {document['type']}, {members}{assignor},"
        f" coordinator {document['coordinator']}"
    )
    if with_members:
        print_rows(_MEMBER_COLUMNS, document["members"], as_json=False)
    else:
        print_rows(_PARTITION_COLUMNS, document["partitions"], as_json=False)

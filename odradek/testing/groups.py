"""Members and lag of groups, as a test waits for them, and the description of a group for people."""

from __future__ import annotations

from odradek.client.admin.admin import Admin
from odradek.client.admin.results import GroupDescription, PartitionLag
from odradek.client.errors import BrokerError, ClientError
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plural import pluralize
from odradek.testing.clients import Clients
from odradek.testing.reading import read

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


async def find_group(admin: Admin, group: str) -> GroupDescription | None:
    """Return the group, or None if it does not exist yet. Raises ClientError."""
    try:
        found = (await admin.describe_groups([group])).value(group)
    except BrokerError as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise
    return None if found.state == "Dead" else found


async def has_members(admin: Admin, group: str, count: int) -> bool:
    """Return whether the group has so many members and all have their partitions. Raises ClientError."""
    found = await find_group(admin, group)
    if count == 0 or found is None:
        return count == 0 and (found is None or not found.members)
    return found.state == "Stable" and len(found.members) == count


async def lags_of(admin: Admin, group: str) -> dict[TopicPartition, PartitionLag]:
    """Return the lag on each partition of the group that still exists; empty for a new group. Raises ClientError."""
    if await find_group(admin, group) is None:
        return {}
    return (await admin.group_lag(group)).succeeded


async def is_at_lag_zero(clients: Clients, group: str) -> bool:
    """Return whether the group has committed offsets, and no record after them that its members could read.

    Some clients commit the offset after the last record, which is before the marker of its transaction.
    """
    lags = await lags_of(await clients.admin(), group)
    if all(lag.committed is None for lag in lags.values()):
        return False
    behind = {partition: lag for partition, lag in lags.items() if lag.lag != 0 and lag.end > 0}
    return not behind or not await _has_records(clients, behind)


async def _has_records(clients: Clients, behind: dict[TopicPartition, PartitionLag]) -> bool:
    async with clients.consumer() as consumer:
        ends = await consumer.end_offsets(behind)
        if any(ends[partition] < lag.end for partition, lag in behind.items()):
            return True  # of a transaction that is open
        starts = {partition: lag.committed for partition, lag in behind.items() if lag.committed is not None}
        async for _ in read(consumer, ends, starts):
            return True
    return False


async def group_lines(admin: Admin, group: str) -> list[str]:
    """Describe a group: its state, each member with its partitions, each partition with offsets and lag."""
    try:
        found = await find_group(admin, group)
        lags = await lags_of(admin, group)
    except ClientError as error:
        return [f"group {group}: {error.summary}"]
    if found is None:
        return [f"group {group} does not exist"]
    lines = [f"group {group}: {found.state}, {found.type}, {pluralize(len(found.members), 'member')}"]
    lines += [
        f"  member {member.client_id} at {member.host}: {', '.join(map(str, member.assignment)) or 'no partition'}"
        for member in found.members
    ]
    lines += [f"  {partition}: {_lag(lag)}" for partition, lag in lags.items()]
    return lines


def _lag(lag: PartitionLag) -> str:
    if lag.committed is None:
        return f"nothing committed, end {lag.end}"
    return f"committed {lag.committed}, end {lag.end}, lag {lag.lag}"

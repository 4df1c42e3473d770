"""The range assignor: of every topic each member gets one range of partitions, the first members the lower numbers.

```
5 partitions, 3 members     first  0 1     second  2 3     third  4
```
Static members come first, by instance id, then the others by member id. So topics with equal numbers of partitions that
all members subscribe to are assigned alike, which joins of two topics rely on. Assignments are not sticky, but the
order is: a static member that comes back gets its partitions again. Source: Kafka's `RangeAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.broker.coordinator.assignors.spec import Assignment, MemberSpec


def assign_ranges(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    assignments: dict[str, Assignment] = {member_id: {} for member_id in members}
    subscribers: dict[bytes, list[str]] = {}
    for member_id in sorted(members, key=lambda member_id: _order(member_id, members[member_id])):
        for topic_id in members[member_id].topic_ids:
            subscribers.setdefault(topic_id, []).append(member_id)
    for topic_id, member_ids in subscribers.items():
        quota, extra = divmod(partition_counts[topic_id], len(member_ids))
        start = 0
        for position, member_id in enumerate(member_ids):
            end = start + quota + (position < extra)
            if end > start:
                assignments[member_id][topic_id] = frozenset(range(start, end))
            start = end
    return assignments


def _order(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    return (member.instance_id is None, member_id if member.instance_id is None else member.instance_id)

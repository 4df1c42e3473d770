"""Server-side assignors (KIP-848): pure functions that assign partitions to members.

`assign(members, partition_counts)` takes the members by id and the number of partitions of each topic that any of
them subscribes to, by topic id. It returns every member's new assignment. Each partition of a subscribed topic is
assigned to exactly one member that subscribes to the topic; the same input gives the same result.

| module | what |
|---|---|
| `uniform` | equal numbers of partitions, as few moves as possible; the default |
| `range` | of every topic a range of partitions |
| `spec` | the types of members and assignments |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from odradek.broker.coordinator.assignors.range import assign_ranges
from odradek.broker.coordinator.assignors.spec import Assignment, MemberSpec
from odradek.broker.coordinator.assignors.uniform import assign_uniformly

__all__ = ["ASSIGNORS", "Assignment", "Assignor", "MemberSpec"]

Assignor = Callable[[Mapping[str, MemberSpec], Mapping[bytes, int]], dict[str, Assignment]]

ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniformly, "range": assign_ranges}
"""By the name that group.consumer.assignors and the heartbeats of members use."""

"""Who gets which partitions in a classic group: computed by the leader, from what all members subscribe to.

| name | rule | rebalancing |
|---|---|---|
| `range` | of each topic: partitions in order, members in order, blocks of M = ceil(partitions / members) | eager |
| `roundrobin` | all partitions in order, dealt out one by one to those who subscribe to their topic | eager |
| `sticky` | even, with as few changes as possible (`odradek.client.group.sticky`) | eager |
| `cooperative-sticky` | the same; partitions move in two steps, and nobody stops (KIP-429) | cooperative |

Eager: every member gives all up before it joins again. Members are ordered by instance id if they have one, before
those who have none, and by member id. Source: Kafka `RangeAssignor`, `RoundRobinAssignor`.

Differs from Kafka: there `range` gives the first (partitions mod members) members one more than the others. Here every
member has M, and what is missing is missing at the end: of 10 partitions three members have 4, 4 and 2, and of 4
partitions 2, 2 and none. So partition p is member p // M's, whatever the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from odradek.client.group.sticky import assign_cooperative, assign_sticky
from odradek.client.group.subscriber import Assignment, Subscriber
from odradek.client.record import TopicPartition


class Assignor(NamedTuple):
    """An assignor by its name in the protocol; `assign` takes the subscribers and the number of partitions by topic."""

    name: str
    is_cooperative: bool
    assign: Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def assign_range(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    for topic in sorted(_topics(subscribers) & partitions.keys()):
        takers = [one for one in _ordered(subscribers) if topic in one.topics]
        share = -(-partitions[topic] // len(takers))  # rounded up
        for index in range(partitions[topic]):
            assignment[takers[index // share].member_id].append(TopicPartition(topic, index))
    return assignment


def assign_round_robin(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    turns = cycle(_ordered(subscribers))
    for topic in sorted(_topics(subscribers) & partitions.keys()):
        for index in range(partitions[topic]):
            taker = next(one for one in turns if topic in one.topics)
            assignment[taker.member_id].append(TopicPartition(topic, index))
    return assignment


def _ordered(subscribers: Sequence[Subscriber]) -> list[Subscriber]:
    return sorted(subscribers, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))


def _topics(subscribers: Collection[Subscriber]) -> set[str]:
    return {topic for one in subscribers for topic in one.topics}


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", False, assign_range),
        Assignor("roundrobin", False, assign_round_robin),
        Assignor("sticky", False, assign_sticky),
        Assignor("cooperative-sticky", True, assign_cooperative),
    )
}

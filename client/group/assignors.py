"""Assignors of classic groups: the leader computes the assignment from the subscriptions of all members.

| name | rule | rebalancing |
|---|---|---|
| `range` | for each topic: partitions in order, members in order, blocks of M = ceil(partitions / members) | eager |
| `roundrobin` | all partitions in order, one by one to the members that subscribe to their topic | eager |
| `sticky` | even, with as few changes as possible | eager |
| `cooperative-sticky` | the same; a partition moves in two steps, others are read meanwhile (KIP-429) | cooperative |

Eager: every member revokes all its partitions before it joins again. Members are ordered by instance id if they have
one, before those without, and by member id. Source: Kafka `RangeAssignor`, `RoundRobinAssignor`.

Differs from Kafka: there `range` gives the first (partitions mod members) members one partition more than the others.
Here every member gets M, and the last members get fewer: of 10 partitions three members get 4, 4 and 2, and of 4
partitions 2, 2 and none. So partition p always belongs to member p // M.

The sticky algorithm:

1. Every member keeps the partitions that it owns, if they exist and it still subscribes to their topic. If two members
   claim the same partition, the one of the newer generation keeps it; with equal generations neither does.
2. The remaining partitions are assigned, those with the fewest subscribers first, to the subscriber with the fewest
   partitions.
3. While a member has at least two partitions more than another that could take one of them, one partition moves.

Each move of step 3 makes the loads more even, so it ends; no partition moves between members whose loads differ by at
most one. The cooperative assignor leaves out a partition that another member still owns: its owner revokes it and
joins again, and that rebalance assigns it (KIP-429). Source: Kafka `StickyAssignor`, `CooperativeStickyAssignor`; the
rule is the same, but where several even assignments exist Kafka may choose another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from odradek.client.record import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


class Subscriber(NamedTuple):
    """The subscription of a member: its topics, and the partitions that it owns or owned last.

    `generation` is the last in which it owned them, -1 if unknown.
    """

    member_id: str
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None


Owners = dict[TopicPartition, str]


class Assignor(NamedTuple):
    """An assignor with its name in the protocol; `assign` takes the subscribers and the partition counts by topic."""

    name: str
    is_cooperative: bool
    assign: Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def assign_range(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    for topic in sorted(_topics(subscribers) & partitions.keys()):
        candidates = [one for one in _ordered(subscribers) if topic in one.topics]
        share = -(-partitions[topic] // len(candidates))  # rounded up
        for index in range(partitions[topic]):
            assignment[candidates[index // share].member_id].append(TopicPartition(topic, index))
    return assignment


def assign_round_robin(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    members = cycle(_ordered(subscribers))
    for topic in sorted(_topics(subscribers) & partitions.keys()):
        for index in range(partitions[topic]):
            candidate = next(one for one in members if topic in one.topics)
            assignment[candidate.member_id].append(TopicPartition(topic, index))
    return assignment


def _ordered(subscribers: Sequence[Subscriber]) -> list[Subscriber]:
    return sorted(subscribers, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))


def _topics(subscribers: Collection[Subscriber]) -> set[str]:
    return {topic for one in subscribers for topic in one.topics}


def assign_sticky(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    candidates = {
        topic: sorted(one.member_id for one in subscribers if topic in one.topics)
        for topic in sorted({topic for one in subscribers for topic in one.topics} & partitions.keys())
    }
    owners = {
        partition: member
        for partition, member in claims(subscribers).items()
        if member in candidates.get(partition.topic, ()) and partition.partition < partitions[partition.topic]
    }
    loads = {one.member_id: 0 for one in subscribers}
    for member in owners.values():
        loads[member] += 1
    everything = [TopicPartition(topic, index) for topic in candidates for index in range(partitions[topic])]
    for partition in sorted(everything, key=lambda one: len(candidates[one.topic])):
        if partition not in owners and candidates[partition.topic]:
            _assign_to(partition, min(candidates[partition.topic], key=loads.__getitem__), owners, loads)
    while _even_out(everything, candidates, owners, loads):
        pass
    assignment: Assignment = {one.member_id: [] for one in subscribers}
    for partition in everything:
        if partition in owners:
            assignment[owners[partition]].append(partition)
    return assignment


def assign_cooperative(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    owners = claims(subscribers)
    return {
        member: [partition for partition in given if owners.get(partition, member) == member]
        for member, given in assign_sticky(subscribers, partitions).items()
    }


def claims(subscribers: Sequence[Subscriber]) -> Owners:
    """The owner of each partition that exactly one member of the newest generation claims."""
    found: dict[TopicPartition, tuple[int, str | None]] = {}
    for one in subscribers:
        for partition in one.owned:
            generation, _ = found.get(partition, (-2, None))
            if one.generation > generation:
                found[partition] = (one.generation, one.member_id)
            elif one.generation == generation:
                found[partition] = (generation, None)
    return {partition: member for partition, (_, member) in found.items() if member is not None}


def _assign_to(partition: TopicPartition, member: str, owners: Owners, loads: dict[str, int]) -> None:
    owners[partition] = member
    loads[member] += 1


def _even_out(
    everything: Sequence[TopicPartition], candidates: Mapping[str, Sequence[str]], owners: Owners, loads: dict[str, int]
) -> bool:
    """Move partitions from members that have too many to those with the fewest. Returns whether any moved."""
    has_moved = False
    for partition in everything:
        if partition not in owners:
            continue
        owner = owners[partition]
        least = min(candidates[partition.topic], key=loads.__getitem__)
        if loads[owner] > loads[least] + 1:
            loads[owner] -= 1
            _assign_to(partition, least, owners, loads)
            has_moved = True
    return has_moved


ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", False, assign_range),
        Assignor("roundrobin", False, assign_round_robin),
        Assignor("sticky", False, assign_sticky),
        Assignor("cooperative-sticky", True, assign_cooperative),
    )
}

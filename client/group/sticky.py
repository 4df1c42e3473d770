"""Even assignments that change as little as possible, in one step or in two.

1. Every member keeps what it owns, if the partition is still there and it still subscribes to the topic. Of two who
   claim the same, the one of the newer generation has it; of equal generations nobody does.
2. What is left goes, the partitions with the fewest takers first, to the taker with the fewest partitions.
3. As long as some member has at least two partitions more than another who could take one of them, one moves.

Each move of step 3 makes the loads more even, so it ends; a partition is never moved where all are within one of each
other. Cooperative: a partition that another member still owns is left out; its owner gives it up, which makes the next
rebalance, and then it is free (KIP-429). Source: Kafka `StickyAssignor`, `CooperativeStickyAssignor`, whose rule this
is; which of several even assignments comes out may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.client.group.subscriber import Assignment, Subscriber
from odradek.client.record import TopicPartition

Owners = dict[TopicPartition, str]


def assign_sticky(subscribers: Sequence[Subscriber], partitions: Mapping[str, int]) -> Assignment:
    takers = {
        topic: sorted(one.member_id for one in subscribers if topic in one.topics)
        for topic in sorted({topic for one in subscribers for topic in one.topics} & partitions.keys())
    }
    owners = {
        partition: member
        for partition, member in claims(subscribers).items()
        if member in takers.get(partition.topic, ()) and partition.partition < partitions[partition.topic]
    }
    loads = {one.member_id: 0 for one in subscribers}
    for member in owners.values():
        loads[member] += 1
    everything = [TopicPartition(topic, index) for topic in takers for index in range(partitions[topic])]
    for partition in sorted(everything, key=lambda one: len(takers[one.topic])):
        if partition not in owners and takers[partition.topic]:
            _give(partition, min(takers[partition.topic], key=loads.__getitem__), owners, loads)
    while _even_out(everything, takers, owners, loads):
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
    """Who owns what, where that is beyond doubt."""
    found: dict[TopicPartition, tuple[int, str | None]] = {}
    for one in subscribers:
        for partition in one.owned:
            generation, _ = found.get(partition, (-2, None))
            if one.generation > generation:
                found[partition] = (one.generation, one.member_id)
            elif one.generation == generation:
                found[partition] = (generation, None)
    return {partition: member for partition, (_, member) in found.items() if member is not None}


def _give(partition: TopicPartition, member: str, owners: Owners, loads: dict[str, int]) -> None:
    owners[partition] = member
    loads[member] += 1


def _even_out(
    everything: Sequence[TopicPartition], takers: Mapping[str, Sequence[str]], owners: Owners, loads: dict[str, int]
) -> bool:
    """Move each partition whose owner has too many to the member with the fewest; False if none had to move."""
    has_moved = False
    for partition in everything:
        if partition not in owners:
            continue
        owner = owners[partition]
        least = min(takers[partition.topic], key=loads.__getitem__)
        if loads[owner] > loads[least] + 1:
            loads[owner] -= 1
            _give(partition, least, owners, loads)
            has_moved = True
    return has_moved

"""The uniform assignor: every member gets equally many partitions, and as few as possible move.

1. Members keep what they have of topics that they still subscribe to.
2. Partitions that nobody has go to the subscriber with the fewest partitions.
3. While a topic's most loaded subscriber with partitions of it has at least two more than its least loaded one, a
   partition moves between them.

Topics with the same subscribers are one *pool* and handled as one. In the usual group, where everybody subscribes to
the same, there is one pool, and the sizes of any two assignments differ by one at most. Where subscriptions overlap,
evening out one pool may disturb another, so the pools are gone through again until nothing moves, but not for ever.

Source: Kafka's `UniformAssignor`. Differs from Kafka: who gets one partition more than others is whoever has it
already, because Kafka goes by the order of a hash table and may move partitions without making anything more even.

1,000 members that share 10,000 partitions take 25 ms.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping

from odradek.broker.coordinator.assignors.spec import Assignment, MemberSpec

_MAX_ROUNDS = 16
"""As in Kafka: a round about halves what is uneven, so this is far beyond any group that is not made for it."""

TopicPartition = tuple[bytes, int]


def assign_uniformly(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    loads = dict.fromkeys(members, 0)
    pools = [_Pool(subscribers, topic_ids, loads) for subscribers, topic_ids in _pools(members, partition_counts)]
    for pool in pools:
        pool.keep(members, partition_counts)
    for pool in pools:
        pool.hand_out(partition_counts)
    for _ in range(_MAX_ROUNDS):
        if sum(pool.even_out() for pool in pools) == 0:
            break
    return _assignments(members, pools)


def _pools(
    members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]
) -> Iterator[tuple[tuple[str, ...], list[bytes]]]:
    """Yield subscribers and topics of each pool, first those with the most partitions for each subscriber."""
    members_by_topics: dict[frozenset[bytes], list[str]] = defaultdict(list)
    for member_id in sorted(members):
        members_by_topics[members[member_id].topic_ids].append(member_id)
    # Topics with the same subscribers are in the same of these sets; there are far fewer sets than members.
    sets_with: dict[bytes, list[frozenset[bytes]]] = defaultdict(list)
    for topic_ids in members_by_topics:
        for topic_id in topic_ids:
            sets_with[topic_id].append(topic_ids)
    topics_by_sets: dict[tuple[frozenset[bytes], ...], list[bytes]] = defaultdict(list)
    for topic_id in sorted(sets_with):
        topics_by_sets[tuple(sets_with[topic_id])].append(topic_id)
    pools = [
        (tuple(sorted(member_id for each in sets for member_id in members_by_topics[each])), topic_ids)
        for sets, topic_ids in topics_by_sets.items()
    ]

    def order(pool: tuple[tuple[str, ...], list[bytes]]) -> tuple[float, int]:
        member_ids, topic_ids = pool
        return -sum(partition_counts[topic_id] for topic_id in topic_ids) / len(member_ids), len(member_ids)

    yield from sorted(pools, key=order)


class _Pool:
    """Topics with the same subscribers. `loads` counts all partitions of each member, and is shared by all pools."""

    def __init__(self, subscribers: tuple[str, ...], topic_ids: list[bytes], loads: dict[str, int]) -> None:
        self._subscribers = subscribers
        self._topic_ids = topic_ids
        self._loads = loads
        self._taken: set[TopicPartition] = set()
        self.owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in subscribers}

    def keep(self, members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> None:
        """Leave with the members what they have."""
        topic_ids = set(self._topic_ids)
        for member_id in self._subscribers:
            assigned = members[member_id].assigned
            kept = [
                (topic_id, number)
                for topic_id in sorted(topic_ids.intersection(assigned))
                for number in sorted(assigned[topic_id])
                if number < partition_counts[topic_id] and (topic_id, number) not in self._taken
            ]
            self._taken.update(kept)
            self.owned[member_id] = kept
            self._loads[member_id] += len(kept)

    def hand_out(self, partition_counts: Mapping[bytes, int]) -> None:
        """Give the partitions that nobody has to the least loaded, so that each gets a run of them."""
        free = [
            (topic_id, number)
            for topic_id in self._topic_ids
            for number in range(partition_counts[topic_id])
            if (topic_id, number) not in self._taken
        ]
        shares = self._shares(len(free))
        start = 0
        for member_id in self._subscribers:
            end = start + shares.get(member_id, 0)
            self.owned[member_id] += free[start:end]
            start = end

    def _shares(self, count: int) -> dict[str, int]:
        """Say how many of `count` partitions each member gets, if each goes to the least loaded one; count them."""
        shares: dict[str, int] = defaultdict(int)
        heap = [(self._loads[member_id], member_id) for member_id in self._subscribers] if count else []
        heapq.heapify(heap)
        for _ in range(count):
            load, member_id = heap[0]
            heapq.heapreplace(heap, (load + 1, member_id))
            shares[member_id] += 1
        for member_id, share in shares.items():
            self._loads[member_id] += share
        return shares

    def even_out(self) -> int:
        """Move partitions from the most to the least loaded until they differ by one; return how many moved."""
        least = [(self._loads[member_id], member_id) for member_id in self._subscribers]
        most = [(-load, member_id) for load, member_id in least if self.owned[member_id]]
        heapq.heapify(least)
        heapq.heapify(most)
        moved = 0
        # Only the two ends move, and towards each other: the top of neither heap is ever out of date.
        while most and -most[0][0] - least[0][0] > 1:
            negative_load, giver = most[0]
            load, taker = least[0]
            self.owned[taker].append(self.owned[giver].pop())
            self._loads[giver] -= 1
            self._loads[taker] += 1
            heapq.heapreplace(least, (load + 1, taker))
            if self.owned[giver]:
                heapq.heapreplace(most, (negative_load + 1, giver))
            else:
                heapq.heappop(most)
            moved += 1
        return moved


def _assignments(members: Mapping[str, MemberSpec], pools: list[_Pool]) -> dict[str, Assignment]:
    gathered: dict[str, dict[bytes, list[int]]] = {member_id: defaultdict(list) for member_id in members}
    for pool in pools:
        for member_id, owned in pool.owned.items():
            for topic_id, number in owned:
                gathered[member_id][topic_id].append(number)
    return {
        member_id: {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
        for member_id, topics in gathered.items()
    }

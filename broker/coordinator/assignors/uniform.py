"""The uniform assignor: every member gets equally many partitions, and as few as possible move.

1. Members keep what they have of topics that they still subscribe to.
2. Unassigned partitions go to the subscriber with the fewest partitions.
3. While a topic's most loaded subscriber with partitions of it has at least two more than its least loaded one, a
   partition moves between them.

Topics with the same subscribers form a *pool*, which is balanced as a whole. In the usual group all members subscribe
to the same topics: there is one pool, and the sizes of any two assignments differ by one at most. Where subscriptions
overlap, balancing one pool may disturb another, so it is repeated until nothing moves, up to a maximum.

Source: Kafka's `UniformAssignor`. Differs from Kafka: a partition more than others stays with the member that has it,
because Kafka follows the order of a hash table and may move partitions without making the assignment more even.

1,000 members that share 10,000 partitions take 25 ms.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping

from odradek.broker.coordinator.assignors.spec import Assignment, MemberSpec

_MAX_ROUNDS = 16
"""As in Kafka. A round about halves the imbalance, so real groups need far fewer."""

TopicPartition = tuple[bytes, int]


def assign_uniformly(members: Mapping[str, MemberSpec], partition_counts: Mapping[bytes, int]) -> dict[str, Assignment]:
    loads = dict.fromkeys(members, 0)
    pools = [_Pool(subscribers, topic_ids, loads) for subscribers, topic_ids in _pools(members, partition_counts)]
    for pool in pools:
        pool.keep(members, partition_counts)
    for pool in pools:
        pool.assign_free(partition_counts)
    for _ in range(_MAX_ROUNDS):
        if sum(pool.balance() for pool in pools) == 0:
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
        """Keep the partitions that members have."""
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

    def assign_free(self, partition_counts: Mapping[bytes, int]) -> None:
        """Assign the unassigned partitions to the least loaded members, to each a range of them."""
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
        """Return each member's share of `count` partitions that go to the least loaded; add it to the loads."""
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

    def balance(self) -> int:
        """Move partitions from the most to the least loaded until these differ by one; return how many moved."""
        least = [(self._loads[member_id], member_id) for member_id in self._subscribers]
        most = [(-load, member_id) for load, member_id in least if self.owned[member_id]]
        heapq.heapify(least)
        heapq.heapify(most)
        moved = 0
        # Only the loads of the two tops change, towards each other, so the tops of both heaps are always current.
        while most and -most[0][0] - least[0][0] > 1:
            negative_load, most_loaded = most[0]
            load, least_loaded = least[0]
            self.owned[least_loaded].append(self.owned[most_loaded].pop())
            self._loads[most_loaded] -= 1
            self._loads[least_loaded] += 1
            heapq.heapreplace(least, (load + 1, least_loaded))
            if self.owned[most_loaded]:
                heapq.heapreplace(most, (negative_load + 1, most_loaded))
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

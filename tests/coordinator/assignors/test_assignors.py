"""The guarantees of assignors, for any group: one owner for every partition, even numbers, few moves."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.coordinator.assignors import ASSIGNORS, Assignment, MemberSpec

TOPICS = [bytes([number]) * 16 for number in range(4)]

members = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=8
)
counts = st.fixed_dictionaries({topic: st.integers(0, 12) for topic in TOPICS})


def specs(
    subscriptions: dict[str, frozenset[bytes]], before: dict[str, Assignment] | None = None
) -> dict[str, MemberSpec]:
    return {name: MemberSpec(topics, (before or {}).get(name, {})) for name, topics in subscriptions.items()}


def owners(assignments: dict[str, Assignment]) -> list[tuple[bytes, int, str]]:
    return [
        (topic, number, name)
        for name, assignment in assignments.items()
        for topic, numbers in assignment.items()
        for number in numbers
    ]


def sizes(assignments: dict[str, Assignment]) -> dict[str, int]:
    return {name: sum(map(len, assignment.values())) for name, assignment in assignments.items()}


@pytest.mark.parametrize("name", ASSIGNORS)
@given(subscriptions=members, partition_counts=counts)
def test_each_partition_of_a_subscribed_topic_has_one_owner_which_subscribes_to_it(
    name: str, subscriptions: dict[str, frozenset[bytes]], partition_counts: dict[bytes, int]
) -> None:
    assigned = owners(ASSIGNORS[name](specs(subscriptions), partition_counts))
    assert all(topic in subscriptions[owner] for topic, _, owner in assigned)
    subscribed = {topic for topics in subscriptions.values() for topic in topics}
    expected = [(topic, number) for topic in subscribed for number in range(partition_counts[topic])]
    assert sorted((topic, number) for topic, number, _ in assigned) == sorted(expected)


@pytest.mark.parametrize("name", ASSIGNORS)
@given(subscriptions=members, partition_counts=counts)
def test_the_same_group_in_another_order_gets_the_same_assignment(
    name: str, subscriptions: dict[str, frozenset[bytes]], partition_counts: dict[bytes, int]
) -> None:
    backwards = dict(reversed(subscriptions.items()))
    assign = ASSIGNORS[name]
    assert assign(specs(subscriptions), partition_counts) == assign(specs(backwards), partition_counts)


@given(subscriptions=members, changed=members, partition_counts=counts)
def test_uniform_leaves_no_partition_that_could_move_to_a_member_with_two_less(
    subscriptions: dict[str, frozenset[bytes]],
    changed: dict[str, frozenset[bytes]],
    partition_counts: dict[bytes, int],
) -> None:
    before = ASSIGNORS["uniform"](specs(subscriptions), partition_counts)
    after = ASSIGNORS["uniform"](specs(changed, before), partition_counts)
    size = sizes(after)
    for topic, _, owner in owners(after):
        for name, topics in changed.items():
            assert topic not in topics or size[name] + 1 >= size[owner]


@given(subscriptions=members, partition_counts=counts)
def test_uniform_moves_nothing_if_nothing_changed(
    subscriptions: dict[str, frozenset[bytes]], partition_counts: dict[bytes, int]
) -> None:
    before = ASSIGNORS["uniform"](specs(subscriptions), partition_counts)
    assert ASSIGNORS["uniform"](specs(subscriptions, before), partition_counts) == before


@given(
    first=st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8),
    then=st.sets(st.text("abcdef", min_size=1, max_size=3), min_size=1, max_size=8),
    partition_counts=counts,
)
def test_uniform_moves_the_fewest_possible_if_all_members_subscribe_to_the_same_topics(
    first: set[str], then: set[str], partition_counts: dict[bytes, int]
) -> None:
    everything = frozenset(TOPICS)
    before = ASSIGNORS["uniform"](specs(dict.fromkeys(first, everything)), partition_counts)
    after = ASSIGNORS["uniform"](specs(dict.fromkeys(then, everything), before), partition_counts)
    kept = set(owners(before)) & set(owners(after))
    # A member that stays keeps its partitions up to a fair share; those that had most get the larger shares.
    quota, extra = divmod(sum(partition_counts.values()), len(then))
    had = sorted((sizes(before).get(name, 0) for name in then), reverse=True)
    most = sum(min(count, quota + (position < extra)) for position, count in enumerate(had))
    assert len(kept) == most


def test_range_assigns_ranges_to_static_members_first() -> None:
    everything = frozenset(TOPICS[:1])
    group = {"b": MemberSpec(everything), "a": MemberSpec(everything), "z": MemberSpec(everything, {}, "static")}
    assigned = ASSIGNORS["range"](group, {TOPICS[0]: 5})
    assert {name: sorted(topics[TOPICS[0]]) for name, topics in assigned.items()} == {
        "z": [0, 1],
        "a": [2, 3],
        "b": [4],
    }


def test_uniform_gives_a_new_member_the_highest_partitions_of_the_others() -> None:
    topic = TOPICS[0]
    alone = {"a": MemberSpec(frozenset([topic]), {topic: frozenset(range(4))})}
    both = {**alone, "b": MemberSpec(frozenset([topic]))}
    assigned = ASSIGNORS["uniform"](both, {topic: 4})
    assert assigned == {"a": {topic: frozenset([0, 1])}, "b": {topic: frozenset([2, 3])}}


def test_uniform_assigns_ranges_of_partitions_to_members_that_join_together() -> None:
    topic = TOPICS[0]
    group = {name: MemberSpec(frozenset([topic])) for name in "abc"}
    assigned = ASSIGNORS["uniform"](group, {topic: 7})
    assert [sorted(assigned[name][topic]) for name in "abc"] == [[0, 1, 2], [3, 4], [5, 6]]


@given(subscriptions=members, partition_counts=counts)
def test_assignments_of_members_with_equal_subscriptions_differ_by_one_at_most(
    subscriptions: dict[str, frozenset[bytes]], partition_counts: dict[bytes, int]
) -> None:
    everything = frozenset(TOPICS)
    assigned = ASSIGNORS["uniform"](specs(dict.fromkeys(subscriptions, everything)), partition_counts)
    count = Counter(sizes(assigned).values())
    assert max(count) - min(count) <= 1

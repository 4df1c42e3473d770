"""Assignors of classic groups: the examples of Kafka's documentation, and the properties of every assignment."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.group.assignors import ASSIGNORS, Assignment, Subscriber, assign_cooperative, assign_sticky, claims
from odradek.client.group.consumer_protocol import decode_sticky_data, encode_sticky_data
from odradek.client.record import TopicPartition


def members(*topics: str, count: int = 2) -> list[Subscriber]:
    return [Subscriber(f"C{number}", frozenset(topics)) for number in range(count)]


def text(assignment: Assignment) -> dict[str, str]:
    return {member: " ".join(map(str, partitions)) for member, partitions in assignment.items()}


def test_range_assigns_equal_blocks_and_the_rest_to_the_last_members() -> None:
    assert text(ASSIGNORS["range"].assign(members("t0", "t1"), {"t0": 3, "t1": 3})) == {
        "C0": "t0-0 t0-1 t1-0 t1-1",
        "C1": "t0-2 t1-2",
    }
    assert text(ASSIGNORS["range"].assign(members("t", count=3), {"t": 10})) == {
        "C0": "t-0 t-1 t-2 t-3",
        "C1": "t-4 t-5 t-6 t-7",
        "C2": "t-8 t-9",
    }
    assert text(ASSIGNORS["range"].assign(members("t", count=3), {"t": 4})) == {
        "C0": "t-0 t-1",
        "C1": "t-2 t-3",
        "C2": "",
    }


@given(st.integers(1, 40), st.integers(1, 12))
def test_range_is_the_formula(partitions: int, count: int) -> None:
    group = members("t", count=count)
    found = ASSIGNORS["range"].assign(list(reversed(group)), {"t": partitions})
    share = math.ceil(partitions / count)
    every = [TopicPartition("t", index) for index in range(partitions)]
    by_id = sorted(one.member_id for one in group)
    assert found == {member: every[place * share : (place + 1) * share] for place, member in enumerate(by_id)}


def test_round_robin_skips_members_that_do_not_subscribe() -> None:
    assert text(ASSIGNORS["roundrobin"].assign(members("t0", "t1"), {"t0": 3, "t1": 3})) == {
        "C0": "t0-0 t0-2 t1-1",
        "C1": "t0-1 t1-0 t1-2",
    }
    uneven = [Subscriber("C0", frozenset({"t0"})), Subscriber("C1", frozenset({"t0", "t1"}))]
    uneven.append(Subscriber("C2", frozenset({"t0", "t1", "t2"})))
    assert text(ASSIGNORS["roundrobin"].assign(uneven, {"t0": 1, "t1": 2, "t2": 3})) == {
        "C0": "t0-0",
        "C1": "t1-0",
        "C2": "t1-1 t2-0 t2-1 t2-2",
    }


def test_members_with_an_instance_id_come_first_in_its_order() -> None:
    found = [
        Subscriber("a", frozenset({"t"})),
        Subscriber("b", frozenset({"t"}), instance_id="2"),
        Subscriber("c", frozenset({"t"}), instance_id="1"),
    ]
    assert text(ASSIGNORS["range"].assign(found, {"t": 3})) == {"a": "t-2", "b": "t-1", "c": "t-0"}


def test_sticky_spreads_the_example_of_kafka_evenly() -> None:
    uneven = [Subscriber("C0", frozenset({"t0"})), Subscriber("C1", frozenset({"t0", "t1"}))]
    uneven.append(Subscriber("C2", frozenset({"t0", "t1", "t2"})))
    assert text(assign_sticky(uneven, {"t0": 1, "t1": 2, "t2": 3})) == {
        "C0": "t0-0",
        "C1": "t1-0 t1-1",
        "C2": "t2-0 t2-1 t2-2",
    }


@pytest.mark.parametrize("name", ASSIGNORS)
def test_topics_that_do_not_exist_are_not_assigned(name: str) -> None:
    assert ASSIGNORS[name].assign(members("t", "gone"), {}) == {"C0": [], "C1": []}


def subscribers_of(assignment: Assignment, topics: Sequence[str], generation: int = 1) -> list[Subscriber]:
    return [
        Subscriber(member, frozenset(topics), tuple(owned), generation) for member, owned in sorted(assignment.items())
    ]


def test_a_new_member_gets_only_its_even_share() -> None:
    before = assign_sticky(members("t", count=3), {"t": 12})
    found = assign_sticky([*subscribers_of(before, ["t"]), Subscriber("C9", frozenset({"t"}))], {"t": 12})
    assert sorted(map(len, found.values())) == [3, 3, 3, 3]
    assert all(set(found[member]) <= set(before[member]) for member in before)


def test_the_other_members_keep_their_partitions_when_one_leaves() -> None:
    before = assign_sticky(members("t", count=4), {"t": 12})
    del before["C2"]
    found = assign_sticky(subscribers_of(before, ["t"]), {"t": 12})
    assert sorted(map(len, found.values())) == [4, 4, 4]
    assert all(set(before[member]) <= set(found[member]) for member in before)


def test_the_newer_of_two_claims_wins_and_equal_claims_cancel_out() -> None:
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    older = Subscriber("a", frozenset({"t"}), (first, second), 4)
    newer = Subscriber("b", frozenset({"t"}), (first,), 5)
    equal = Subscriber("c", frozenset({"t"}), (second,), 4)
    assert claims([older, newer, equal]) == {first: "b"}


def test_a_cooperative_partition_is_not_assigned_while_another_member_owns_it() -> None:
    before = assign_sticky(members("t", count=1), {"t": 4})
    joined = [*subscribers_of(before, ["t"]), Subscriber("C9", frozenset({"t"}))]
    first = assign_cooperative(joined, {"t": 4})
    assert (len(first["C0"]), first["C9"]) == (2, [])
    second = assign_cooperative(subscribers_of(first, ["t"], 2), {"t": 4})
    assert second["C0"] == first["C0"]
    assert sorted(second["C0"] + second["C9"]) == [TopicPartition("t", index) for index in range(4)]


TOPICS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 7), min_size=1)
GROUPS = st.lists(st.frozensets(st.sampled_from("abcde")), min_size=1, max_size=6)


@given(TOPICS, GROUPS, st.sampled_from(sorted(ASSIGNORS)), st.integers())
def test_every_subscribed_partition_has_one_owner_that_subscribes_to_it(
    partitions: dict[str, int], wanted: list[frozenset[str]], name: str, seed: int
) -> None:
    chance = random.Random(seed)
    everything = [TopicPartition(topic, index) for topic in "abcde" for index in range(7)]
    found = [
        Subscriber(
            f"m{number}", topics, tuple(chance.sample(everything, chance.randrange(10))), chance.randrange(-1, 3)
        )
        for number, topics in enumerate(wanted)
    ]
    assignment = ASSIGNORS[name].assign(found, partitions)
    given_out = [partition for owned in assignment.values() for partition in owned]
    due = {
        TopicPartition(topic, index)
        for topic, count in partitions.items()
        if any(topic in topics for topics in wanted)
        for index in range(count)
    }
    assert len(given_out) == len(set(given_out))
    assert set(given_out) <= due
    if name != "cooperative-sticky":
        assert set(given_out) == due
    for one in found:
        assert {partition.topic for partition in assignment[one.member_id]} <= one.topics


@given(TOPICS, st.integers(1, 6))
def test_sticky_is_even_among_equals_and_a_fixed_point(partitions: dict[str, int], count: int) -> None:
    found = assign_sticky(members(*partitions, count=count), partitions)
    sizes = sorted(map(len, found.values()))
    assert sizes[-1] - sizes[0] <= 1
    again = assign_sticky(subscribers_of(found, list(partitions)), partitions)
    assert again == found


@pytest.mark.parametrize("generation", [-1, 7])
def test_sticky_data_round_trip(generation: int) -> None:
    owned = [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("\u00fc", 1)]
    assert decode_sticky_data(encode_sticky_data(owned, generation)) == (owned, generation)
    data = encode_sticky_data(owned, generation)
    assert decode_sticky_data(data[:-4]) == (owned, -1)  # the form before Kafka 2.3


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\x02\0\x01a", b"\0\0\0\x01\0\x01\xff\0\0\0\0"])
def test_invalid_sticky_data_are_ignored(data: Any) -> None:
    assert decode_sticky_data(data) == ([], -1)

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.administration.placement import Candidates, place, place_as_assigned
from odradek.broker.metadata.administration.topic_names import TakenNames, check_name
from odradek.protocol.errors import ErrorCode, KafkaError


def _code(function: Callable[..., object], *arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        function(*arguments)
    assert caught.value.detail
    return caught.value.code


def _brokers(*live: int, down: Iterable[int] = (), racks: str = "") -> Candidates:
    """`racks` has the rack of broker n at place n - 1; without it no broker has a rack."""

    def rack(node_id: int) -> str | None:
        return racks[node_id - 1] if racks else None

    return Candidates({each: rack(each) for each in live}, {each: rack(each) for each in down})


def test_the_jth_replica_of_partition_i_is_on_broker_i_plus_j_mod_n() -> None:
    assert place(4, 2, _brokers(30, 10, 20)) == [[10, 20], [20, 30], [30, 10], [10, 20]]


def test_a_grown_topic_continues_where_it_ended() -> None:
    assert place(2, 2, _brokers(1, 2, 3), first=4) == place(6, 2, _brokers(1, 2, 3))[4:]


def test_the_racks_take_turns() -> None:
    assert place(4, 2, _brokers(1, 2, 3, 4, racks="aabb")) == [[1, 3], [3, 2], [2, 4], [4, 1]]


def test_a_rack_gets_no_second_replica_while_another_has_none() -> None:
    """In the order 1a 2b 3c 4a 5b, the three brokers from 4a on would be 4a 5b 1a."""
    assert place(5, 3, _brokers(1, 2, 3, 4, 5, racks="abcab")) == [
        [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, 3], [5, 1, 3],
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=7),
    st.integers(1, 7),
    st.integers(1, 20),
)
def test_replicas_are_distinct_and_spread_over_the_racks(racks: list[str], factor: int, partitions: int) -> None:
    factor = min(factor, len(racks))
    of_broker = dict(enumerate(racks, 1))

    placed = place(partitions, factor, _brokers(*of_broker, racks="".join(racks)))

    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[each] for each in of_broker) <= 1
    for replicas in placed:
        assert len(set(replicas)) == factor
        used = Counter(of_broker[each] for each in replicas)
        for rack, count in used.items():
            free = {other for each, other in of_broker.items() if each not in replicas and other != rack}
            assert all(count <= used[other] + 1 for other in free), (placed, racks)


def test_brokers_that_are_down_fill_up() -> None:
    assert place(3, 3, _brokers(1, 3, down=[2, 4])) == [[1, 3, 2], [3, 1, 4], [1, 3, 2]]
    assert place(2, 2, _brokers(1, 3, down=[2])) == [[1, 3], [3, 1]], "not while enough live brokers exist"
    with pytest.raises(KafkaError, match="is 4, but only 3 brokers are known"):
        place(1, 4, _brokers(1, 2, down=[3]))
    assert _code(place, 1, 1, _brokers(down=[1])) is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "code"),
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (10_001, 1, ErrorCode.POLICY_VIOLATION),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_invalid_numbers(partitions: int, replication_factor: int, code: ErrorCode) -> None:
    assert _code(place, partitions, replication_factor, _brokers(1, 2)) is code


def test_replicas_go_where_they_are_assigned() -> None:
    assert place_as_assigned({1: [2, 1], 0: [1, 3]}, _brokers(1, 2, down=[3])) == [[1, 3], [2, 1]]


@pytest.mark.parametrize(
    "assignments",
    [
        {1: [1]},
        {0: [1], 2: [1]},
        {0: [3]},
        {0: [-1]},
        {0: [1, 1]},
        {0: []},
        {0: [1], 1: [1, 2]},
        {0: [1], 1: []},
        {0: [1], 1: [4]},
    ],
)
def test_invalid_assignments(assignments: dict[int, list[int]]) -> None:
    assert _code(place_as_assigned, assignments, _brokers(1, 2, down=[4])) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n", "a\x00", "١"])
def test_illegal_names(name: str) -> None:
    assert _code(check_name, name) is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(("new", "old"), [("a_b", "a.b"), ("a.b", "a_b"), ("a.b_c", "a_b.c")])
def test_dots_and_underscores_collide(new: str, old: str) -> None:
    assert _code(TakenNames([old]).check_new, new) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_other_names_do_not_collide() -> None:
    TakenNames(["a.c", "A.b", "ab", "a-b", "a.b"]).check_new("a.b")


def test_the_name_of_kafkas_metadata_log_is_reserved() -> None:
    assert _code(TakenNames([]).check_new, "__cluster_metadata") is ErrorCode.INVALID_REQUEST

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

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


def _workers(
    hosts: Sequence[int], racks: str = "", *, down: int = 0, workers_count_as_brokers: bool = False
) -> Candidates:
    """`hosts` has the number of workers of each host, 0 for a broker that is none; the last `down` brokers are down."""
    on: dict[int, str] = {}
    of_rack: dict[int, str | None] = {}
    for first, workers in enumerate(hosts, 1):
        for worker in range(max(workers, 1)):
            on[first + 1000 * worker] = f"host {first}" if workers else ""
            of_rack[first + 1000 * worker] = racks[first - 1] if racks else None
    live = sorted(on)[: len(on) - down]
    return Candidates(
        {each: of_rack[each] for each in live},
        {each: rack for each, rack in of_rack.items() if each not in live},
        {each: host for each, host in on.items() if host},
        workers_count_as_brokers,
    )


def test_a_host_is_passed_over_while_it_holds_a_replica() -> None:
    assert place(4, 2, _workers([2, 2])) == [[1, 2], [2, 1001], [1001, 1002], [1002, 1]]
    assert place(6, 2, _workers([4, 2]))[4:] == [[2001, 2], [3001, 2]], "1 and its workers are one host"
    assert place(4, 1, _workers([4])) == [[1], [1001], [2001], [3001]]


def test_a_broker_without_a_host_fails_alone() -> None:
    assert place(3, 3, _workers([0, 0, 0])) == [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    assert place(3, 2, _workers([2, 0])) == [[1, 2], [2, 1001], [1001, 2]]


@pytest.mark.parametrize(
    ("brokers", "factor", "hosts"),
    [
        (_workers([4]), 2, "the 4 known brokers run on 1 host:"),
        (_workers([4, 4]), 3, "the 8 known brokers run on 2 hosts:"),
        (_workers([4, 4], down=5), 3, "the 8 known brokers run on 2 hosts:"),
        (_workers([3, 0]), 3, "the 4 known brokers run on 2 hosts:"),
    ],
)
def test_there_are_no_more_replicas_than_hosts(brokers: Candidates, factor: int, hosts: str) -> None:
    with pytest.raises(KafkaError, match=rf"partition {factor} time\(s\): {hosts} workers of one host fail") as caught:
        place(1, factor, brokers)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert len(place(1, factor, brokers._replace(workers_count_as_brokers=True))[0]) == factor


def test_workers_that_are_down_fill_up_where_no_live_one_of_their_host_has_a_replica() -> None:
    assert place(2, 2, _workers([2, 2], down=3)) == [[1, 2], [1, 1002]]
    with pytest.raises(KafkaError, match="the 2 known brokers run on 1 host"):
        place(1, 2, _workers([2], down=1))


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("abc")), min_size=1, max_size=5),
    st.integers(1, 5),
    st.integers(1, 40),
    st.integers(0, 12),
)
def test_no_two_replicas_are_on_one_host(hosts: list[tuple[int, str]], factor: int, partitions: int, down: int) -> None:
    factor = min(factor, len(hosts))
    made = _workers([count for count, _ in hosts], "".join(rack for _, rack in hosts))
    brokers = _workers(
        [count for count, _ in hosts],
        "".join(rack for _, rack in hosts),
        down=min(down, len(made.live) - 1),
    )

    placed = place(partitions, factor, brokers)

    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[each] for each in brokers.live) <= 1
    for replicas in placed:
        assert len(replicas) == factor
        used = [brokers.hosts.get(each, f"broker {each}") for each in replicas]
        assert len(set(used)) == factor, placed
        assert [each in brokers.live for each in replicas] == sorted(each in brokers.live for each in replicas)[::-1]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc")), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(0, 5),
)
def test_workers_that_count_as_brokers_are_placed_like_brokers_without_hosts(
    hosts: list[tuple[int, str]], factor: int, down: int
) -> None:
    counts, racks = [count for count, _ in hosts], "".join(rack for _, rack in hosts)
    live = len(_workers(counts).live)
    brokers = _workers(counts, racks, down=min(down, live - 1), workers_count_as_brokers=True)

    factor = min(factor, live)

    assert place(10, factor, brokers) == place(10, factor, Candidates(brokers.live, brokers.down))


@pytest.mark.parametrize("replicas", [[1, 1001], [1001, 2, 2001], [1, 2, 2002]])
def test_replicas_cannot_be_assigned_to_one_host(replicas: list[int]) -> None:
    brokers = _workers([3, 3], down=2)

    with pytest.raises(KafkaError, match="workers of one host") as caught:
        place_as_assigned({0: replicas}, brokers)
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert place_as_assigned({0: [1, 1002]}, brokers) == [[1, 1002]]
    assert place_as_assigned({0: replicas}, brokers._replace(workers_count_as_brokers=True)) == [replicas]


def test_brokers_that_are_down_fill_up() -> None:
    assert place(3, 3, _brokers(1, 3, down=[2, 4])) == [[1, 3, 2], [3, 1, 4], [1, 3, 2]]
    assert place(2, 2, _brokers(1, 3, down=[2])) == [[1, 3], [3, 1]], "not while enough live brokers exist"
    with pytest.raises(KafkaError, match=r"factor of 4 cannot be reached because only 3 broker\(s\) are registered"):
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

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.metadata.placement import place, place_as_assigned
from odradek.broker.metadata.topic_names import check_name, check_new_name
from odradek.protocol.errors import ErrorCode, KafkaError


def _code(function: Callable[..., object], *arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        function(*arguments)
    assert caught.value.detail
    return caught.value.code


def test_the_jth_replica_of_partition_i_is_on_broker_i_plus_j_mod_n() -> None:
    assert place(4, 2, {30, 10, 20}) == [[10, 20], [20, 30], [30, 10], [10, 20]]


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
    assert _code(place, partitions, replication_factor, {1, 2}) is code


def test_replicas_go_where_they_are_assigned() -> None:
    assert place_as_assigned({1: [2, 1], 0: [1, 2]}, {1, 2}) == [[1, 2], [2, 1]]


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
    ],
)
def test_invalid_assignments(assignments: dict[int, list[int]]) -> None:
    assert _code(place_as_assigned, assignments, {1, 2}) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("name", ["a", "A.b-c_9", "x" * 249, "...", "__consumer_offsets"])
def test_legal_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "é", "a\n", "a\x00", "١"])
def test_illegal_names(name: str) -> None:
    assert _code(check_name, name) is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(("new", "old"), [("a_b", "a.b"), ("a.b", "a_b"), ("a.b_c", "a_b.c")])
def test_dots_and_underscores_collide(new: str, old: str) -> None:
    assert _code(check_new_name, new, [old]) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_other_names_do_not_collide() -> None:
    check_new_name("a.b", ["a.c", "A.b", "ab", "a-b", "a.b"])


def test_the_name_of_kafkas_metadata_log_is_reserved() -> None:
    assert _code(check_new_name, "__cluster_metadata", []) is ErrorCode.INVALID_REQUEST

"""Partitioners. The hashes were computed with `org.apache.kafka.common.utils.Utils.murmur2` 4.3.1."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from odradek.client import ConfigurationError
from odradek.client.producer.partitioner import TopicPartitioner, murmur2, partition_of_key, topic_partitioner

JAVA_HASHES = [
    (b"", 275646681),
    (b"21", -973932308),
    (b"abc", 479470107),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (bytes.fromhex("99"), 1288378381),
    (bytes.fromhex("1834"), -1042682160),
    (bytes.fromhex("5a94c9"), -313141582),
    (bytes.fromhex("390b7702"), 612225306),
    (bytes.fromhex("09d32a595d"), 99467382),
    (bytes.fromhex("41f4b3e592471a"), -525456804),
    (bytes.fromhex("05194bb55dcab391"), -356129997),
    (bytes.fromhex("0016175aa147e1f3e98ee8"), 1355034518),
    (bytes.fromhex("e5c4caaf166fc2edcea4fb1b65e240a4e944b31d0705e6c8b71cf8bdfc97c6"), -1306779908),
    (bytes(i * 7 & 0xFF for i in range(255)), -1581615148),
    (bytes(i * 7 & 0xFF for i in range(256)), 461075269),
    (bytes(i * 7 & 0xFF for i in range(257)), 1872494943),
    (bytes(i * 7 & 0xFF for i in range(1000)), 483719753),
]


@pytest.mark.parametrize(("key", "java"), JAVA_HASHES)
def test_the_hash_is_that_of_java(key: bytes, java: int) -> None:
    assert murmur2(key) == java & 0xFFFFFFFF


@pytest.mark.parametrize(("key", "java"), JAVA_HASHES)
def test_the_partition_drops_the_sign_of_the_hash(key: bytes, java: int) -> None:
    assert partition_of_key(key, 17) == (java & 0x7FFFFFFF) % 17


def partitioner(chosen: Any, partitions: int = 3, available: Sequence[int] = (), share: int = 100) -> TopicPartitioner:
    found = topic_partitioner("t", chosen, share)
    found.update(partitions, available or range(partitions))
    return found


@pytest.mark.parametrize("name", ["default", "sticky"])
def test_a_sticky_partition_gets_its_share_and_the_record_that_exceeds_it(name: str) -> None:
    sticky = partitioner(name)
    first = [sticky.choose(None, b"", size) for size in (60, 60)]
    assert first[0] == first[1] != sticky.choose(None, b"", 1)


def test_the_next_sticky_partition_is_another_one_if_there_is_one() -> None:
    sticky = partitioner("sticky")
    chosen = [sticky.choose(b"key", b"", 100) for _ in range(50)]
    assert all(before != after for before, after in pairwise(chosen))
    sticky.update(3, [chosen[-1]])
    assert sticky.choose(None, b"", 100) == chosen[-1]


def test_a_sticky_partition_without_a_leader_gets_no_more_records() -> None:
    sticky = partitioner("sticky", available=[0])
    assert sticky.choose(None, b"", 1) == 0
    sticky.update(3, [1, 2])
    assert sticky.choose(None, b"", 1) in (1, 2)


@pytest.mark.parametrize("name", ["default", "murmur2"])
def test_keys_have_the_partitions_of_java_also_without_a_leader(name: str) -> None:
    by_key = partitioner(name, 17, available=[0])
    for key, java in JAVA_HASHES:
        assert by_key.choose(key, b"", 1) == (java & 0x7FFFFFFF) % 17


def test_murmur2_treats_a_missing_key_as_an_empty_one() -> None:
    by_key = partitioner("murmur2", 17)
    assert by_key.choose(None, b"", 1) == by_key.choose(b"", b"", 1) == 275646681 % 17


def test_round_robin_uses_the_available_partitions_in_turn() -> None:
    in_turn = partitioner("round_robin", 4, available=[0, 1, 3])
    chosen = [in_turn.choose(b"key", b"", 1) for _ in range(9)]
    start = chosen.index(0)
    assert chosen[start : start + 6] == [0, 1, 3, 0, 1, 3]


def test_random_uses_every_available_partition_and_no_other() -> None:
    at_random = partitioner("random", 4, available=[0, 1, 3])
    assert {at_random.choose(b"key", b"", 1) for _ in range(500)} == {0, 1, 3}


def test_a_function_gets_the_record_and_the_partitions() -> None:
    arguments: list[Any] = []

    def last(*question: Any) -> int:
        arguments.append(question)
        return 3

    assert partitioner(last, 4, available=[0, 3]).choose(b"key", b"value", 8) == 3
    assert arguments == [("t", b"key", b"value", 4, [0, 3])]


@pytest.mark.parametrize("returned", [-1, 3, None, "0"])
def test_a_function_that_returns_no_partition_is_an_error(returned: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"choose a partition on t: the partitioner returned .*, and the topic has 3"
    ):
        partitioner(lambda *_: returned).choose(None, b"", 1)

"""Which partition a record goes to. The hashes were computed by `org.apache.kafka.common.utils.Utils.murmur2` 4.3.1."""

from __future__ import annotations

import pytest

from client.partitioner import StickyPartition, murmur2, partition_of_key

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


def test_a_sticky_partition_takes_its_share_and_the_record_that_passes_it() -> None:
    sticky = StickyPartition(100)
    assert not sticky.has_room(1)
    sticky.choose([0, 1, 2], 60)
    assert sticky.has_room(60)
    assert not sticky.has_room(1)


def test_the_next_sticky_partition_is_another_one_if_there_is_one() -> None:
    sticky = StickyPartition(100)
    before = sticky.choose([0, 1, 2], 100)
    for _ in range(50):
        after = sticky.choose([0, 1, 2], 100)
        assert after != before
        before = after
    assert sticky.choose([before], 100) == before


def test_a_partition_that_is_left_gets_nothing_more() -> None:
    sticky = StickyPartition(100)
    sticky.choose([0], 1)
    sticky.leave()
    assert not sticky.has_room(1)

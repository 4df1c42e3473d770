"""The timestamps of `kafka.produce`, and what the broker does about them when a test moves its clock."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from odradek.client import ConsumerRecord
from odradek.testing import Kafka
from odradek.testing.sending import Stamp, stamp_of

HOUR_MS = 3_600_000


def values(kafka: Kafka, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic)]


def segments(kafka: Kafka, topic: str) -> list[int]:
    """Return the base offsets of the topic's segments."""
    [log_dir] = kafka.aio.own.threaded.broker.config.log_dirs
    return sorted(int(path.stem) for path in Path(log_dir).glob(f"{topic}-0/*.log"))


def test_headers_and_a_timestamp_are_those_of_all_records_of_a_call(kafka: Kafka) -> None:
    kafka.topic("orders")
    read = ConsumerRecord("elsewhere", 0, 7, 5, None, b"c", (("shop", b"x"),))
    at = datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)

    kafka.produce("orders", [b"a", (b"k", b"b"), read], headers={"trace": b"7", "none": None}, timestamp=at)
    kafka.produce("orders", [read], headers=[("twice", b"1"), ("twice", b"2")])
    kafka.produce("orders", [read], timestamp=0)
    kafka.produce("orders", [read], headers={})

    headers = (("trace", b"7"), ("none", None))
    assert [(each.timestamp, each.headers) for each in kafka.records("orders")] == [
        (1_700_000_000_250, headers),
        (1_700_000_000_250, headers),
        (1_700_000_000_250, headers),
        (5, (("twice", b"1"), ("twice", b"2"))),
        (0, (("shop", b"x"),)),
        (5, ()),
    ]


@pytest.mark.parametrize("timestamp", [0, 1 << 62])
def test_a_timestamp_is_kept_however_far_it_is_from_now(kafka: Kafka, timestamp: int) -> None:
    kafka.topic("orders", config={"retention.ms": -1})
    [place] = kafka.produce("orders", [b"a"], timestamp=timestamp)
    assert place.timestamp == kafka.records("orders")[0].timestamp == timestamp


def test_records_have_the_time_of_the_machine_until_the_clock_is_moved(kafka: Kafka) -> None:
    assert stamp_of(None, None, kafka.aio.cluster.time_ms()) == Stamp(None, None, timestamp_wins=False)


def test_records_have_the_time_of_the_broker_once_it_was_moved(kafka: Kafka) -> None:
    kafka.topic("orders")
    before = kafka.clock.time_ms()
    kafka.clock.advance(days=1000)
    kept = ConsumerRecord("elsewhere", 0, 7, before, None, b"c", ())

    kafka.produce("orders", [b"a", kept])

    [first, second] = kafka.records("orders")
    assert before + 1000 * 24 * HOUR_MS <= first.timestamp <= kafka.clock.time_ms()
    assert second.timestamp == before


def test_a_record_of_a_moved_clock_is_as_old_as_the_clock_says(kafka: Kafka) -> None:
    kafka.topic("orders", config={"retention.ms": HOUR_MS})
    kafka.clock.advance(hours=3)
    kafka.produce("orders", [b"three socks"])
    kafka.clock.advance(minutes=10)
    assert values(kafka, "orders") == [b"three socks"]
    kafka.clock.advance(hours=1)
    assert values(kafka, "orders") == []


def test_a_segment_is_full_after_segment_ms_of_the_moved_clock(kafka: Kafka) -> None:
    kafka.topic("orders", config={"segment.ms": HOUR_MS})
    kafka.clock.advance(hours=3)
    kafka.produce("orders", [b"a"])
    kafka.clock.advance(minutes=50)
    kafka.produce("orders", [b"b"])
    assert segments(kafka, "orders") == [0]
    kafka.clock.advance(minutes=20)
    kafka.produce("orders", [b"c"])
    assert segments(kafka, "orders") == [0, 2]


@pytest.mark.process  # the cleaner's
def test_records_are_compacted_after_max_compaction_lag_ms_of_the_moved_clock(kafka: Kafka) -> None:
    config: dict[str, Any] = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 1, "max.compaction.lag.ms": HOUR_MS
    }  # fmt: skip
    kafka.topic("prices", config=config)
    kafka.clock.advance(hours=3)
    kafka.produce("prices", [(b"socks", b"3"), (b"socks", b"4")])
    kafka.clock.advance(minutes=50)
    kafka.produce("prices", [(b"shoes", b"80")])
    assert values(kafka, "prices") == [b"3", b"4", b"80"]
    kafka.clock.advance(minutes=20)
    kafka.produce("prices", [(b"shoes", b"70")])  # begins a segment: the active one is not compacted
    kafka.clock.advance(minutes=1)
    assert values(kafka, "prices") == [b"4", b"80", b"70"]


@pytest.mark.parametrize(("timestamps", "left"), [("CreateTime", []), ("LogAppendTime", [b"three socks"])])
def test_a_client_with_the_time_of_the_machine_is_stamped_by_the_broker_if_the_topic_says_so(
    kafka: Kafka, timestamps: str, left: list[bytes]
) -> None:
    kafka.topic("orders", config={"retention.ms": HOUR_MS, "message.timestamp.type": timestamps})
    now = kafka.clock.time_ms()
    kafka.clock.advance(hours=3)
    kafka.produce("orders", [b"three socks"], timestamp=now)
    kafka.clock.advance(minutes=10)
    assert values(kafka, "orders") == left

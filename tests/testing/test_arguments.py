"""What a test passes by mistake: the errors name what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from odradek.client.admin.arguments import ConfigResource
from odradek.client.record import ConsumerRecord
from odradek.testing import Kafka


def read(timestamp: Any) -> ConsumerRecord:
    """Return a record as it was read, but for its timestamp."""
    return ConsumerRecord("t", 0, 0, timestamp, None, b"", ())


NAIVE = datetime(2026, 11, 28)  # noqa: DTZ001 - the mistake


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda kafka: kafka.topic("t", partitions=0), ValueError, "partitions is 1 or more, and not 0: leave it out"),
        (lambda kafka: kafka.topic("t", partitions=-1), ValueError, "partitions is 1 or more, and not -1"),
        (lambda kafka: kafka.topic("t", "3"), TypeError, "partitions is an int, such as partitions=3, and not '3'"),
        (lambda kafka: kafka.topic("t", True), TypeError, "partitions is an int, such as partitions=3, and not True"),
        (lambda kafka: kafka.topic("t", 1.0), TypeError, "partitions is an int, such as partitions=3, and not 1.0"),
        (lambda kafka: kafka.topic("t", replication_factor=0), ValueError, "replication_factor is 1 or more, and not"),
        (lambda kafka: kafka.topic("t", replication_factor="2"), TypeError, "such as replication_factor=2, and not"),
        (lambda kafka: kafka.topic("t", 1 << 31), ValueError, "partitions is 2147483647 or less, and not 2147483648"),
        (lambda kafka: kafka.topic("t", 1 << 80), ValueError, "partitions is 2147483647 or less, and not 1208"),
        (
            lambda kafka: kafka.topic("t", replication_factor=1 << 15),
            ValueError,
            "replication_factor is 32767 or less, and not 32768: leave it out for the broker's default",
        ),
        (lambda kafka: kafka.topic("t", config="compact"), TypeError, 'a dict, such as {"cleanup.policy": "compact"}'),
        (lambda kafka: kafka.topic("t", config={1: "a"}), TypeError, 'property is a str, such as "retention.ms", and'),
        (
            lambda kafka: kafka.topic("t", config={"cleanup.policy": ["compact", "delete"]}),
            TypeError,
            """a str, a number or a bool, and not ['compact', 'delete']: write "compact,delete\"""",
        ),
        (lambda kafka: kafka.topic(None), TypeError, 'the name of a topic is a str, such as "orders", and not None'),
        (lambda kafka: kafka.topic(""), ValueError, "the name of a topic is empty"),
        (lambda kafka: kafka.produce(b"t", []), TypeError, "such as \"orders\", and not b't'"),
        (
            lambda kafka: kafka.produce("t", [], {"a": "b"}),
            TypeError,
            "header a is bytes or None, and not 'b'; encode it",
        ),
        (lambda kafka: kafka.produce("t", [], "a"), TypeError, 'headers are a dict, such as {"trace": b"7"}, or pairs'),
        (lambda kafka: kafka.produce("t", [], [b"a"]), TypeError, "or pairs of a str and bytes, and not b'a'"),
        (lambda kafka: kafka.produce("t", [], {b"a": b"b"}), TypeError, "or pairs of a str and bytes, and not (b'a', "),
        (lambda kafka: kafka.produce("t", None), TypeError, 'a list, such as [b"three socks"], and not None'),
        (lambda kafka: kafka.produce("t", [], timestamp=-1), ValueError, "from 0 to 2^63 - 1, and not -1"),
        (lambda kafka: kafka.produce("t", [], timestamp=1 << 63), ValueError, "from 0 to 2^63 - 1, and not 9223"),
        (lambda kafka: kafka.produce("t", [], timestamp=1.7e9), TypeError, "such as 1700000000000, or a datetime, and"),
        (lambda kafka: kafka.produce("t", [], timestamp=NAIVE), ValueError, "2026-11-28 00:00:00 has no time zone"),
        (
            lambda kafka: kafka.produce("t", [read(timestamp=None)]),
            TypeError,
            "such as 1700000000000, or a datetime, and",
        ),
        (lambda kafka: kafka.produce("t", [read(timestamp=1 << 63)]), ValueError, "from 0 to 2^63 - 1, and not 9223"),
        (lambda kafka: kafka.records(3), TypeError, "the name of a topic is a str"),
        (
            lambda kafka: kafka.wait_for_records("t", 0),
            ValueError,
            "n is 1 or more, and not 0: kafka.assert_no_records",
        ),
        (lambda kafka: kafka.wait_for_records("t", "2"), TypeError, "n is an int, such as n=2, and not '2'"),
        (
            lambda kafka: kafka.wait_for_records("t", 1, timeout="5"),
            TypeError,
            "a number of seconds, such as timeout=5, or None",
        ),
        (lambda kafka: kafka.wait_for_records("t", 1, b"x"), TypeError, "where is a function, such as lambda record:"),
        (lambda kafka: kafka.wait_for_members("g", -1), ValueError, "n is 0 or more, and not -1"),
        (lambda kafka: kafka.assert_no_records("t", "5"), TypeError, "such as seconds=5, and not '5'"),
        (lambda kafka: kafka.assert_no_records("t", 0, b"x"), TypeError, "where is a function, such as lambda record:"),
        (lambda kafka: kafka.assert_no_records("t", -1), ValueError, "from 0 on, and not -1"),
        (lambda kafka: kafka.wait_for_lag_zero(None), TypeError, "the name of a group is a str"),
        (lambda kafka: kafka.wait_for_lag_zero("g", timeout=-1), ValueError, "from 0 on, and not -1"),
        (lambda kafka: kafka.wait_for_lag_zero("g", timeout=float("nan")), ValueError, "from 0 on, and not nan"),
        (lambda kafka: kafka.clock.advance(5), TypeError, "its arguments, such as advance(seconds=5), and not 5"),
        (lambda kafka: kafka.clock.advance("5"), TypeError, "its arguments, such as advance(seconds=5), and not '5'"),
        (lambda kafka: kafka.clock.advance(), TypeError, "say how far: advance(seconds=5), advance(hours=2)"),
        (lambda kafka: kafka.clock.advance(hours="2"), TypeError, "advance(hours='2'): unsupported type"),
        (lambda kafka: kafka.clock.advance(hour=2), TypeError, "write numbers, such as advance(hours=2)"),
        (lambda kafka: kafka.clock.advance(days=10**10), ValueError, "a clock cannot be moved that far"),
        (lambda kafka: kafka.clock.advance(hours=float("nan")), ValueError, "a clock cannot be moved that far"),
        (lambda kafka: kafka.clock.advance(timedelta(hours=-1)), ValueError, "time does not run backwards"),
        (
            lambda kafka: kafka.restore(None),
            TypeError,
            "restore takes what kafka.snapshot() has returned, and not None",
        ),
    ],
)
def test_a_wrong_argument_is_an_error_that_says_what_to_write(
    kafka: Kafka, call: Callable[[Any], object], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call(kafka)
    assert kafka.describe().startswith("no topics and no groups")


def test_a_topic_has_the_properties_that_the_test_gives_it(kafka: Kafka) -> None:
    config = {
        "cleanup.policy": "compact", "retention.ms": 1000, "min.cleanable.dirty.ratio": 0.25, "preallocate": True
    }  # fmt: skip
    kafka.topic("orders", 2, config, replication_factor=1)

    assert kafka.topic("orders", 2, config, 1) == "orders"
    assert kafka.topic("orders", config={"retention.ms": "1000"}) == "orders"
    resource = ConfigResource.topic("orders")

    async def described() -> dict[str, str | None]:
        admin = await kafka.aio.clients.admin()
        entries = (await admin.describe_configs([resource])).value(resource)
        return {name: entries[name].value for name in config}

    assert kafka.aio.loop.run(described()) == {
        "cleanup.policy": "compact",
        "retention.ms": "1000",
        "min.cleanable.dirty.ratio": "0.25",
        "preallocate": "true",
    }


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({"partitions": 2}, "the topic orders exists with 1 partition, not 2"),
        ({"replication_factor": 2}, "the topic orders exists with replication factor 1, not 2"),
        ({"config": {"retention.ms": 5}}, "the topic orders exists with 604800000 for retention.ms, not 5"),
        ({"config": {"retention": 5}}, "the topic orders exists with no value for retention, not 5"),
    ],
)
def test_a_topic_that_exists_in_another_form_is_an_error(kafka: Kafka, wanted: dict[str, Any], text: str) -> None:
    kafka.topic("orders")
    with pytest.raises(ValueError, match=re.escape(text)):
        kafka.topic("orders", **wanted)

"""Settings: accepted values, and the errors for the others."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client import ConfigurationError, Consumer, Producer
from odradek.client.config import Address, parse_bootstrap_servers


@pytest.mark.parametrize(
    ("servers", "addresses"),
    [
        ("localhost:9092", [("localhost", 9092)]),
        ("localhost", [("localhost", 9092)]),
        ("a:1, b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "b:2"], [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_bootstrap_servers_are_host_and_port(servers: Any, addresses: list[Address]) -> None:
    assert list(parse_bootstrap_servers(servers)) == addresses


@pytest.mark.parametrize(
    ("servers", "cure"),
    [
        ("", "name at least one broker"),
        ([], "name at least one broker"),
        (":9092", "write host:port"),
        ("a:b", "write host:port"),
        ("a:0", "port from 1 to 65535"),
        ("a:65536", "port from 1 to 65535"),
        ("::1:9092", "brackets"),
        ("http://a:9092", "not a URL"),
    ],
)
def test_invalid_bootstrap_servers_are_refused(servers: Any, cure: str) -> None:
    with pytest.raises(ConfigurationError, match=cure):
        parse_bootstrap_servers(servers)


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("::1", 9092)) == "[::1]:9092"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"acks": 2}, "acks is 2. choose one of 0, 1, -1, all"),
        ({"acks": True}, "acks is True"),
        ({"partitioner": "fair"}, "partitioner is 'fair'. choose one of default, murmur2, sticky, round_robin, random"),
        ({"compression_type": "brotli"}, "compression_type is 'brotli'"),
        ({"compression_type": "gzip", "compression_level": 10}, "compression_level is 10. gzip has the levels 1 to 9"),
        ({"compression_type": "lz4", "compression_level": 0}, "compression_level is 0. lz4 has the levels 1 to 17"),
        ({"compression_type": "zstd", "compression_level": 23}, "zstd has the levels -131072 to 22"),
        ({"linger_ms": -1}, "linger_ms is -1. give a number of milliseconds, such as 1000, at least 0"),
        ({"batch_size": "16k"}, "batch_size is '16k'"),
        ({"max_in_flight": 0}, "max_in_flight is 0"),
        ({"delivery_timeout_ms": 1000}, "at least request_timeout_ms"),
        ({"enable_idempotence": True, "acks": 0}, "acks is 0"),
        ({"enable_idempotence": True, "max_in_flight": 6}, "idempotence allows at most 5"),
        ({"request_timeout_ms": 0}, "request_timeout_ms is 0"),
        ({"retry_backoff_ms": 2000}, "retry_backoff_max_ms is 1000"),
        ({"value_serializer": "json"}, "value_serializer is 'json'. give a function that returns bytes"),
    ],
)
def test_invalid_settings_of_a_producer_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as refused:
        Producer("localhost:9092", **settings)
    assert isinstance(refused.value, ValueError)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"partition_assignment_strategy": "range, fair"},
            "is .'range', 'fair'.. choose from cooperative-sticky",
        ),
        ({"partition_assignment_strategy": ()}, "choose from cooperative-sticky, range, roundrobin, sticky"),
        ({"heartbeat_interval_ms": 45000}, "make it less than session_timeout_ms"),
        ({"group_protocol": "newest"}, "group_protocol is 'newest'. choose one of classic, consumer"),
        ({"auto_offset_reset": "first"}, "choose one of earliest, latest, none"),
        ({"auto_offset_reset": "by_duration:1h"}, "by_duration:PT1H30M"),
        ({"auto_offset_reset": "by_duration:PT"}, "by_duration:PT1H30M"),
        ({"auto_offset_reset": None}, "auto_offset_reset is None"),
        ({"isolation_level": "serializable"}, "read_uncommitted, read_committed"),
        ({"max_poll_records": 0}, "max_poll_records is 0"),
        ({"fetch_max_wait_ms": 30000}, "less than request_timeout_ms"),
        ({"group_id": ""}, "group_id is ''"),
        ({"group_id": " "}, "give the group a name"),
    ],
)
def test_invalid_settings_of_a_consumer_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        Consumer("localhost:9092", **settings)

"""Arguments of `send`: errors name a wrong type, and serializers convert keys and values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from odradek.client import Producer
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_network import ScriptedNetwork
from tests.client.virtual_time import simulated

HEADERS = r"headers must be a list of pairs \(str, bytes or None\), not "


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"value": "text"}, "value must be bytes or None, not str: encode it, or give the producer a value_serializer"),
        ({"value": ""}, "value must be bytes or None, not str"),
        ({"value": 5}, "value must be bytes or None, not int: serialize it, or give"),
        ({"value": [b"a", b"b"]}, "value must be bytes or None, not list"),
        ({"key": "k"}, "key must be bytes or None, not str: encode it, or give the producer a key_serializer"),
        ({"key": ""}, "key must be bytes or None, not str"),
        ({"key": ("a", "b")}, "key must be bytes or None, not tuple"),
        ({"headers": {"trace": b"42"}}, HEADERS + r"dict: pass list\(headers.items\(\)\)"),
        ({"headers": {"ab": b"42"}}, HEADERS + "dict"),
        ({"headers": "abc"}, HEADERS + "str"),
        ({"headers": 5}, HEADERS + "int"),
        ({"headers": iter([("a", b"")])}, HEADERS + "list_iterator"),
        (
            {"headers": [("a", b"1"), ("b", "2")]},
            r"the value of headers\[1\] must be bytes or None, not str: encode it",
        ),
        ({"headers": [(b"a", b"1")]}, r"the key of headers\[0\] must be str, not bytes"),
        ({"headers": [("a",)]}, r"headers\[0\] must be a pair \(str, bytes or None\), not tuple of 1"),
        ({"headers": ["ab"]}, r"headers\[0\] must be a pair \(str, bytes or None\), not str"),
        ({"partition": "0"}, "partition must be an int or None, not str"),
        ({"partition": 0.0}, "partition must be an int or None, not float"),
        ({"timestamp": "1"}, r"timestamp must be an int \(ms since the epoch\) or None, not str"),
        ({"timestamp": 1.5}, r"timestamp must be an int \(ms since the epoch\) or None, not float"),
    ],
)
@pytest.mark.parametrize("before", [0, 1])
@simulated
async def test_an_argument_of_a_wrong_type_is_named(arguments: dict[str, Any], words: str, before: int) -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        for _ in range(before):
            await producer.send("t", b"before")
        with pytest.raises(TypeError, match=f"^{words}"):
            await producer.send_and_wait("t", **({"value": b""} | arguments))
        await producer.send("t", b"fine")
    assert log.values() == [b"before"] * before + [b"fine"]


@pytest.mark.parametrize("topic", [b"t", None, 5])
@simulated
async def test_a_topic_of_a_wrong_type_is_named_without_a_request(topic: Any) -> None:
    network = ScriptedNetwork()
    async with Producer(network.bootstrap, network=network) as producer:
        requests = len(network.brokers[1].received(MetadataRequest))
        with pytest.raises(TypeError, match=f"^topic must be a str, not {type(topic).__name__}"):
            await producer.send(topic, b"")
        assert len(network.brokers[1].received(MetadataRequest)) == requests


@simulated
async def test_the_exception_of_a_partitioner_is_raised_unchanged() -> None:
    def partitioner(topic: str, key: bytes | None, value: bytes | None, count: int, available: Sequence[int]) -> int:
        raise TypeError("of the user")

    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network, partitioner=partitioner) as producer:
        with pytest.raises(TypeError, match=r"^of the user$"):
            await producer.send("t", b"")


@simulated
async def test_send_and_wait_returns_the_metadata_of_the_record() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await producer.send_and_wait("t", b"1")
        metadata = await producer.send_and_wait("t", b"2", b"key", 0, [("a", b"b")], 7)
    assert metadata == ("t", 0, 1, 7)
    record = log.records()[1]
    assert (record.value, record.key, record.headers, record.timestamp) == (b"2", b"key", [("a", b"b")], 7)


@simulated
async def test_serializers_get_keys_and_values_and_none_too() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer[str | None, Any](
        network.bootstrap,
        network=network,
        key_serializer=lambda key: b"none" if key is None else key.encode(),
        value_serializer=lambda value: json.dumps(value).encode(),
    ) as producer:
        await producer.send_and_wait("t", {"a": 1}, key="k")
        await producer.send_and_wait("t")
    assert [(record.key, record.value) for record in log.records()] == [(b"k", b'{"a": 1}'), (b"none", b"null")]


@simulated
async def test_a_partitioner_gets_serialized_keys_and_values() -> None:
    network = ScriptedNetwork()
    network.create("t", 2)
    seen: list[tuple[bytes | None, bytes | None]] = []

    def partitioner(topic: str, key: bytes | None, value: bytes | None, count: int, available: Sequence[int]) -> int:
        seen.append((key, value))
        return 1

    async with Producer(
        network.bootstrap, network=network, partitioner=partitioner, key_serializer=str.encode
    ) as producer:
        assert (await producer.send_and_wait("t", b"value", "key")).partition == 1
    assert seen == [(b"key", b"value")]


@simulated
async def test_a_serializer_that_returns_no_bytes_is_named_and_its_exceptions_are_raised() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")

    def serialize(value: object) -> Any:
        if value is None:
            raise ValueError("of the user")
        return value

    async with Producer(network.bootstrap, network=network, value_serializer=serialize) as producer:
        with pytest.raises(TypeError, match=r"^value_serializer must return bytes or None, not str$"):
            await producer.send("t", "text")
        with pytest.raises(ValueError, match=r"^of the user$"):
            await producer.send("t")
        await producer.send_and_wait("t", b"fine")
    assert log.values() == [b"fine"]

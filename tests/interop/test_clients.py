"""The abilities of every client: each test runs with all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.peers.clients import END, Client, Outgoing, Start
from tests.peers.clients.aiokafka import Aiokafka
from tests.peers.clients.bundled import Bundled
from tests.peers.clients.confluent import Confluent
from tests.peers.clients.kafka_python import KafkaPython

CLIENTS: list[Client] = [Confluent(), Aiokafka(), KafkaPython(), Bundled()]
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
T0 = 1_700_000_000_000

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
each_codec = pytest.mark.parametrize("codec", CODECS)


def numbered(count: int, size: int = 40) -> list[Outgoing]:
    """Different records from `T0` on, one each second, that compress well together."""
    return [
        Outgoing(f"key-{i % 7}".encode(), f"value-{i:06d}-".encode() + b"x" * size, (), T0 + i * 1000)
        for i in range(count)
    ]


@each_codec
@each_client
def test_records_come_back_as_they_were_sent(client: Client, codec: str, bootstrap: str, topic: str) -> None:
    sent = numbered(200)
    assert client.produce(bootstrap, topic, sent, codec=codec) == list(range(200))
    received = client.consume(bootstrap, topic, count=200)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in received] == [
        (offset, record.timestamp, record.key, record.value) for offset, record in enumerate(sent)
    ]


@pytest.mark.parametrize("reader", CLIENTS, ids=lambda client: f"read-by-{client.name}")
@each_client
def test_every_client_reads_the_records_of_every_other(
    client: Client, reader: Client, bootstrap: str, topic: str
) -> None:
    for codec in CODECS:
        client.produce(bootstrap, topic, numbered(20), codec=codec)
    received = reader.consume(bootstrap, topic, count=100)
    assert [record.offset for record in received] == list(range(100))
    assert [record.value for record in received] == [record.value for record in numbered(20)] * 5


@each_client
def test_headers_null_keys_and_null_values_survive(client: Client, bootstrap: str, topic: str) -> None:
    sent = [
        Outgoing(b"k", b"v", (("trace", b"\x00\xff"), ("empty", b""), ("trace", b"again"))),
        Outgoing(None, b"no key"),
        Outgoing(b"tombstone", None),
        Outgoing(b"", b""),
    ]
    client.produce(bootstrap, topic, sent)
    received = client.consume(bootstrap, topic, count=len(sent))
    assert [(r.key, r.value, r.headers) for r in received] == [(r.key, r.value, r.headers) for r in sent]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@each_client
def test_each_level_of_acknowledgement_stores_every_record(
    client: Client, acks: str, bootstrap: str, topic: str
) -> None:
    offsets = client.produce(bootstrap, topic, numbered(50), acks=acks)
    assert offsets == ([] if acks == "0" else list(range(50)))
    assert [record.value for record in client.consume(bootstrap, topic, count=50)] == [r.value for r in numbered(50)]


@each_client
def test_an_idempotent_producer_stores_each_record_once(client: Client, bootstrap: str, topic: str) -> None:
    for _ in range(2):  # a second producer has another id, so its records are no duplicates
        client.produce(bootstrap, topic, numbered(100), idempotent=True)
    assert client.offsets(bootstrap, topic) == (0, 200)
    assert [record.value for record in client.consume(bootstrap, topic, count=200)] == [
        r.value for r in numbered(100)
    ] * 2


@each_client
def test_a_consumer_starts_at_an_offset(client: Client, bootstrap: str, topic: str) -> None:
    client.produce(bootstrap, topic, numbered(100))
    assert [r.offset for r in client.consume(bootstrap, topic, start=Start("offset", 42), count=58)] == list(
        range(42, 100)
    )


@each_client
def test_a_consumer_starts_at_a_timestamp(client: Client, bootstrap: str, topic: str) -> None:
    client.produce(bootstrap, topic, numbered(100))
    between = Start("timestamp", T0 + 41_500)
    assert [r.offset for r in client.consume(bootstrap, topic, start=between, count=58)] == list(range(42, 100))


@each_client
def test_a_consumer_at_the_end_gets_only_new_records(client: Client, bootstrap: str, topic: str) -> None:
    def write_more() -> None:
        assert Confluent().produce(bootstrap, topic, numbered(5)) == [10, 11, 12, 13, 14]

    client.produce(bootstrap, topic, numbered(10))
    received = client.consume(bootstrap, topic, start=END, count=5, once_positioned=write_more)
    assert [record.offset for record in received] == [10, 11, 12, 13, 14]


@each_client
def test_offsets_are_those_of_the_log(client: Client, bootstrap: str, topic: str) -> None:
    assert client.offsets(bootstrap, topic) == (0, 0)
    client.produce(bootstrap, topic, numbered(30))
    assert client.offsets(bootstrap, topic) == (0, 30)


@each_client
def test_a_time_finds_the_first_record_that_is_not_older(client: Client, bootstrap: str, topic: str) -> None:
    client.produce(bootstrap, topic, numbered(30))
    found = [client.offset_for_time(bootstrap, topic, T0 + ms) for ms in (-1, 0, 1, 9_000, 29_000, 29_001)]
    assert found == [0, 0, 1, 9, 29, None]


@each_client
def test_partitions_are_independent_logs(client: Client, bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        client.produce(bootstrap, topic, numbered(10 * (partition + 1)), partition=partition)
    assert [client.offsets(bootstrap, topic, partition) for partition in range(3)] == [(0, 10), (0, 20), (0, 30)]
    assert len(client.consume(bootstrap, topic, partition=2, count=30)) == 30


@each_client
def test_records_of_half_a_mebibyte_are_accepted(client: Client, bootstrap: str, topic: str) -> None:
    large = [Outgoing(None, bytes([number]) * 500_000) for number in range(6)]
    client.produce(bootstrap, topic, large)
    assert [record.value for record in client.consume(bootstrap, topic, count=6)] == [record.value for record in large]


@each_client
def test_the_first_record_creates_its_topic(client: Client, bootstrap: str, topic_name: str) -> None:
    assert client.produce(bootstrap, topic_name, numbered(3)) == [0, 1, 2]
    assert len(client.consume(bootstrap, topic_name, count=3)) == 3


@each_client
def test_log_append_time_replaces_the_clients_timestamps(
    client: Client, bootstrap: str, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    client.produce(bootstrap, topic, numbered(3))
    stamped = [record.timestamp for record in client.consume(bootstrap, topic, count=3)]
    assert min(stamped) > T0 + 3_000

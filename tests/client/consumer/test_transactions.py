"""Transactions that librdkafka writes to a real broker: `read_committed` returns only their committed records."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import Producer as LibrdkafkaProducer

from odradek.client import Consumer, ConsumerRecord, TopicPartition
from tests.client.conftest import MakeTopic

pytestmark = pytest.mark.servers("apache")


def transact(bootstrap: str, topic: str, *transactions: tuple[str, list[bytes]]) -> None:
    """Write each of the transactions, (producer, values), and commit those whose producer is named "good"."""
    producers: dict[str, LibrdkafkaProducer] = {}
    for name, values in transactions:
        if name not in producers:
            producers[name] = LibrdkafkaProducer(
                {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{name}", "linger.ms": 0}
            )
            producers[name].init_transactions(30)
        producer = producers[name]
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value, partition=0)
        producer.flush(30)
        if name == "good":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


async def read(bootstrap: str, topic: str, level: str) -> list[ConsumerRecord]:
    partition = TopicPartition(topic, 0)
    settings = {"auto_offset_reset": "earliest", "isolation_level": level, "max_partition_fetch_bytes": 300}
    records: list[ConsumerRecord] = []
    async with Consumer(bootstrap, **settings) as consumer:  # type: ignore[arg-type]
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        while await consumer.position(partition) < end:
            records += await consumer.poll(timeout_ms=100)  # the markers return no records
    return records


async def test_aborted_records_and_markers_are_skipped(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = await make_topic()
    rounds = [("good", [b"good %d-%d" % (turn, index) for index in range(3)]) for turn in range(5)]
    spoiled = [("bad", [b"bad %d-%d" % (turn, index) for index in range(turn + 1)]) for turn in range(5)]
    mixed = [one for pair in zip(rounds, spoiled, strict=True) for one in pair]
    await asyncio.to_thread(transact, bootstrap, topic, *mixed)
    committed = await read(bootstrap, topic, "read_committed")
    assert [record.value for record in committed] == [value for _, values in rounds for value in values]
    every = await read(bootstrap, topic, "read_uncommitted")
    assert [record.value for record in every] == [value for _, values in mixed for value in values]
    offsets = [record.offset for record in every]
    assert offsets == sorted(set(offsets))
    assert offsets[3] == 4  # after the first transaction's marker
    assert committed == [record for record in every if record.value and record.value.startswith(b"good")]


async def test_the_end_for_readers_of_committed_records_is_before_an_open_transaction(
    bootstrap: str, make_topic: MakeTopic
) -> None:
    topic = await make_topic()
    partition = TopicPartition(topic, 0)
    await asyncio.to_thread(transact, bootstrap, topic, ("good", [b"done"]))
    producer = LibrdkafkaProducer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-open"})
    await asyncio.to_thread(producer.init_transactions, 30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    await asyncio.to_thread(producer.flush, 30)
    async with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        assert await consumer.end_offsets([partition]) == {partition: 2}
        consumer.assign([partition])
        assert [record.value for record in await consumer.poll()] == [b"done"]
        assert await consumer.poll(timeout_ms=300) == []
        await asyncio.to_thread(producer.commit_transaction, 30)
        assert [record.value for record in await consumer.poll()] == [b"open"]

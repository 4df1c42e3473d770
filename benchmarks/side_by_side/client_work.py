"""One client at one kind of work, as a program: `python -m benchmarks.side_by_side.client_work CLIENT WORK …`.

    CLIENT produce|consume BOOTSTRAP TOPIC RECORD_BYTES CODEC RECORDS

Prints a line of JSON: records a second from the first to the last, and the peak of resident memory.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

Work = Callable[[str, str, int, str, int], "float | Awaitable[float]"]
"""Bootstrap, topic, bytes of a record, codec, records; returns seconds."""


async def odradek_produce(bootstrap: str, topic: str, size: int, codec: str, records: int) -> float:
    from client import Producer

    value = _value(size)
    async with Producer(bootstrap, compression_type=cast("Any", codec), linger_ms=5) as producer:
        start = time.perf_counter()
        for _ in range(records):
            await producer.send(topic, value)
        await producer.flush()
        return time.perf_counter() - start


async def odradek_consume(bootstrap: str, topic: str, _size: int, _codec: str, records: int) -> float:
    from client import Consumer

    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        start = time.perf_counter()
        seen = 0
        while seen < records:
            seen += len(await consumer.poll(1000))
        return time.perf_counter() - start


async def aiokafka_produce(bootstrap: str, topic: str, size: int, codec: str, records: int) -> float:
    from aiokafka import AIOKafkaProducer

    value = _value(size)
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=5,
        acks="all", enable_idempotence=True,
    )  # fmt: skip
    await producer.start()
    try:
        start = time.perf_counter()
        for _ in range(records):
            await producer.send(topic, value)
        await producer.flush()
        return time.perf_counter() - start
    finally:
        await producer.stop()


async def aiokafka_consume(bootstrap: str, topic: str, _size: int, _codec: str, records: int) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        start = time.perf_counter()
        seen = 0
        while seen < records:
            seen += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        return time.perf_counter() - start
    finally:
        await consumer.stop()


def kafka_python_produce(bootstrap: str, topic: str, size: int, codec: str, records: int) -> float:
    from kafka import KafkaProducer

    value = _value(size)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=None if codec == "none" else codec, linger_ms=5, acks="all",
    )  # fmt: skip
    start = time.perf_counter()
    for _ in range(records):
        producer.send(topic, value)
    producer.flush()
    seconds = time.perf_counter() - start
    producer.close()
    return seconds


def kafka_python_consume(bootstrap: str, topic: str, _size: int, _codec: str, records: int) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    start = time.perf_counter()
    seen = 0
    while seen < records:
        seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


def confluent_produce(bootstrap: str, topic: str, size: int, codec: str, records: int) -> float:
    from confluent_kafka import Producer

    value = _value(size)
    producer = Producer({
        "bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5, "enable.idempotence": True,
        "queue.buffering.max.messages": 100_000,
    })  # fmt: skip
    start = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return time.perf_counter() - start


def confluent_consume(bootstrap: str, topic: str, _size: int, _codec: str, records: int) -> float:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "benchmark", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    start = time.perf_counter()
    seen = 0
    while seen < records:
        seen += len(consumer.consume(10_000, timeout=1))
    seconds = time.perf_counter() - start
    consumer.close()
    return seconds


WORK: dict[tuple[str, str], Work] = {
    ("odradek", "produce"): odradek_produce,
    ("odradek", "consume"): odradek_consume,
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "consume"): aiokafka_consume,
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "consume"): kafka_python_consume,
    ("confluent", "produce"): confluent_produce,
    ("confluent", "consume"): confluent_consume,
}


def _value(size: int) -> bytes:
    return bytes(range(256)) * (size // 256) + bytes(size % 256)


def main() -> None:
    client, work, bootstrap, topic, size, codec, records = sys.argv[1:]
    done = WORK[client, work](bootstrap, topic, int(size), codec, int(records))
    seconds = done if isinstance(done, float) else _on_loop(done)
    print(json.dumps({"records_per_s": int(records) / seconds, "client_rss_mb": _peak_kib() / 1024}))


def _peak_kib() -> int:
    """The most memory that was resident; rusage would count the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def _on_loop(work: Awaitable[float]) -> float:
    async def wait() -> float:
        return await work

    try:
        import uvloop
    except ImportError:
        return asyncio.run(wait())
    return uvloop.run(wait())


if __name__ == "__main__":
    main()

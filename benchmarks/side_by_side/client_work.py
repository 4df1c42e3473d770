"""A program that runs one client with one kind of work: `python -m benchmarks.side_by_side.client_work CLIENT WORK …`.

    CLIENT WORK BOOTSTRAP TOPIC RECORD_BYTES CODEC RECORDS

| work | what |
|---|---|
| `produce` | `send` for every record, none awaited, then `flush` |
| `produce-keyed` | the same, each with one of 100,000 keys |
| `consume` | lists, as many records in each as the client gives by default (aiokafka: `getmany`) |
| `consume-varied` | the same, of a topic whose records are of various lengths |
| `consume-by-default` | the same with librdkafka, which by default pauses for a second when the program lags |
| `iterate` | record by record: `async for`, with kafka-python `for` |
| `latency` | 250 records a second, each from `send` to its acknowledgement |
| `end-to-end` | the same, each from `send` until a consumer in this process has it |

Prints a line of JSON. Throughput: records a second from the first to the last, the CPU of each, and the peak of
resident memory. Latency: percentiles.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

KEYS = 100_000
PAUSE_S = 1 / 250


class Task(NamedTuple):
    """The arguments of the program."""

    bootstrap: str
    topic: str
    record_bytes: int
    codec: str
    records: int

    @property
    def compression(self) -> str | None:
        return None if self.codec == "none" else self.codec

    @property
    def value(self) -> bytes:
        """Return a value of which half compresses well, as text does."""
        return (bytes(range(256)) * (self.record_bytes // 256 + 1))[: self.record_bytes]

    def keys(self, *, keyed: bool) -> Iterator[bytes | None]:
        for index in range(self.records):
            yield b"customer-%d" % (index % KEYS) if keyed else None


Measured = dict[str, float]
Work = Callable[[Task], "Measured | Coroutine[Any, Any, Measured]"]


async def _iterated(task: Task, records: AsyncIterable[object]) -> Measured:
    """The rate of `async for`."""
    start = _now()
    left = task.records
    async for _ in records:
        left -= 1
        if not left:
            break
    return _rate(task, start)


async def _sent_one_by_one(task: Task, producer: Any) -> Measured:
    """The latency of sending, where the client answers with a future."""

    async def send() -> None:
        await (await producer.send(task.topic, task.value))

    return await _paced(task, send)


# Ours.


async def odradek_produce(task: Task, *, keyed: bool = False) -> Measured:
    from odradek.client import Producer

    value = task.value
    async with Producer(task.bootstrap, compression_type=cast("Any", task.codec), linger_ms=5) as producer:
        start = _now()
        for key in task.keys(keyed=keyed):
            await producer.send(task.topic, value, key)
        await producer.flush()
        return _rate(task, start)


async def odradek_consume(task: Task) -> Measured:
    from odradek.client import Consumer

    async with Consumer(task.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(task.topic, 0)])
        start = _now()
        seen = 0
        while seen < task.records:
            seen += len(await consumer.poll(1000))
        return _rate(task, start)


async def odradek_iterate(task: Task) -> Measured:
    from odradek.client import Consumer

    async with Consumer(task.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(task.topic, 0)])
        return await _iterated(task, consumer)


async def odradek_latency(task: Task) -> Measured:
    from odradek.client import Producer

    async with Producer(task.bootstrap, linger_ms=0) as producer:
        return await _sent_one_by_one(task, producer)


async def odradek_end_to_end(task: Task) -> Measured:
    from odradek.client import Consumer, Producer

    async with Producer(task.bootstrap, linger_ms=0) as producer, Consumer(task.bootstrap) as consumer:
        consumer.assign([(task.topic, 0)])
        await consumer.seek_to_end()
        records = aiter(consumer)

        async def send_and_read() -> None:
            reading = asyncio.ensure_future(anext(records))
            await producer.send(task.topic, task.value)
            await reading

        return await _paced(task, send_and_read)


# aiokafka.


@asynccontextmanager
async def _aiokafka_producer(task: Task, linger_ms: int) -> AsyncIterator[Any]:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=task.bootstrap, compression_type=task.compression, linger_ms=linger_ms,
        acks="all", enable_idempotence=True,
    )  # fmt: skip
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@asynccontextmanager
async def _aiokafka_consumer(task: Task) -> AsyncIterator[Any]:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=task.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(task.topic, 0)])
        yield consumer
    finally:
        await consumer.stop()


async def aiokafka_produce(task: Task, *, keyed: bool = False) -> Measured:
    value = task.value
    async with _aiokafka_producer(task, linger_ms=5) as producer:
        start = _now()
        for key in task.keys(keyed=keyed):
            await producer.send(task.topic, value, key)
        await producer.flush()
        return _rate(task, start)


async def aiokafka_consume(task: Task) -> Measured:
    async with _aiokafka_consumer(task) as consumer:
        start = _now()
        seen = 0
        while seen < task.records:
            seen += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        return _rate(task, start)


async def aiokafka_iterate(task: Task) -> Measured:
    async with _aiokafka_consumer(task) as consumer:
        return await _iterated(task, consumer)


async def aiokafka_latency(task: Task) -> Measured:
    async with _aiokafka_producer(task, linger_ms=0) as producer:
        return await _sent_one_by_one(task, producer)


async def aiokafka_end_to_end(task: Task) -> Measured:
    async with _aiokafka_producer(task, linger_ms=0) as producer, _aiokafka_consumer(task) as consumer:
        await consumer.seek_to_end()

        async def send_and_read() -> None:
            reading = asyncio.ensure_future(consumer.getone())
            await producer.send(task.topic, task.value)
            await reading

        return await _paced(task, send_and_read)


# kafka-python.


def kafka_python_produce(task: Task, *, keyed: bool = False) -> Measured:
    from kafka import KafkaProducer

    value = task.value
    producer = KafkaProducer(
        bootstrap_servers=task.bootstrap, compression_type=task.compression, linger_ms=5, acks="all",
    )  # fmt: skip
    start = _now()
    for key in task.keys(keyed=keyed):
        producer.send(task.topic, value, key)
    producer.flush()
    measured = _rate(task, start)
    producer.close()
    return measured


def _kafka_python_consumer(task: Task) -> Any:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=task.bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    consumer.assign([TopicPartition(task.topic, 0)])
    return consumer


def kafka_python_consume(task: Task) -> Measured:
    consumer = _kafka_python_consumer(task)
    start = _now()
    seen = 0
    while seen < task.records:
        seen += sum(map(len, consumer.poll(timeout_ms=1000).values()))
    measured = _rate(task, start)
    consumer.close()
    return measured


def kafka_python_iterate(task: Task) -> Measured:
    consumer = _kafka_python_consumer(task)
    start = _now()
    left = task.records
    for _ in consumer:
        left -= 1
        if not left:
            break
    measured = _rate(task, start)
    consumer.close()
    return measured


# librdkafka; see `official`.


def confluent_produce(task: Task) -> Measured:
    from confluent_kafka import Producer

    value = task.value
    producer = Producer({
        "bootstrap.servers": task.bootstrap, "compression.type": task.codec, "linger.ms": 5, "enable.idempotence": True,
        "queue.buffering.max.messages": 100_000,
    })  # fmt: skip
    start = _now()
    for _ in range(task.records):
        while True:
            try:
                producer.produce(task.topic, value)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    return _rate(task, start)


def confluent_consume(task: Task, *, rest_ms: int = 10) -> Measured:
    """Consume with librdkafka. The time starts at the first records; half a second passes before them on any broker.

    When 100,000 records wait for the program, librdkafka stops fetching for `rest_ms`, 1000 by default. The program
    needs less time for them; a fast broker causes more such pauses.
    """
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": task.bootstrap, "group.id": "benchmark", "enable.auto.commit": False,
        "fetch.queue.backoff.ms": rest_ms,
    })  # fmt: skip
    consumer.assign([TopicPartition(task.topic, 0, OFFSET_BEGINNING)])
    seen = len(consumer.consume(1, timeout=60))
    start = _now()
    while seen < task.records:
        # Not more than there are: it would wait for more until the timeout.
        seen += len(consumer.consume(min(10_000, task.records - seen), timeout=1))
    measured = _rate(task, start)
    consumer.close()
    return measured


WORK: dict[tuple[str, str], Work] = {
    ("odradek", "produce"): odradek_produce,
    ("odradek", "produce-keyed"): lambda task: odradek_produce(task, keyed=True),
    ("odradek", "consume"): odradek_consume,
    ("odradek", "consume-varied"): odradek_consume,
    ("odradek", "iterate"): odradek_iterate,
    ("odradek", "latency"): odradek_latency,
    ("odradek", "end-to-end"): odradek_end_to_end,
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "produce-keyed"): lambda task: aiokafka_produce(task, keyed=True),
    ("aiokafka", "consume"): aiokafka_consume,
    ("aiokafka", "consume-varied"): aiokafka_consume,
    ("aiokafka", "iterate"): aiokafka_iterate,
    ("aiokafka", "latency"): aiokafka_latency,
    ("aiokafka", "end-to-end"): aiokafka_end_to_end,
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "produce-keyed"): lambda task: kafka_python_produce(task, keyed=True),
    ("kafka-python", "consume"): kafka_python_consume,
    ("kafka-python", "consume-varied"): kafka_python_consume,
    ("kafka-python", "iterate"): kafka_python_iterate,
    ("confluent", "produce"): confluent_produce,
    ("confluent", "consume"): confluent_consume,
    ("confluent", "consume-by-default"): lambda task: confluent_consume(task, rest_ms=1000),
}


def _now() -> tuple[float, float]:
    """Return time and CPU, in seconds."""
    return time.perf_counter(), time.process_time()


def _rate(task: Task, start: tuple[float, float]) -> Measured:
    seconds, cpu = (now - before for now, before in zip(_now(), start, strict=True))
    return {"records_per_s": task.records / seconds, "client_cpu_us": cpu / task.records * 1e6}


async def _paced(task: Task, work: Callable[[], Awaitable[None]]) -> Measured:
    """Do it at a fixed pace, once for each record and a tenth more at first, which does not count."""
    taken: list[float] = []
    due = time.perf_counter()
    for _ in range(task.records // 10 + task.records):
        due += PAUSE_S
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        start = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - start)
    counted = sorted(taken[-task.records :])
    return {"p50_ms": counted[len(counted) // 2] * 1e3, "p99_ms": counted[len(counted) * 99 // 100] * 1e3}


def main() -> None:
    client, work, bootstrap, topic, size, codec, records = sys.argv[1:]
    task = Task(bootstrap, topic, int(size), codec, int(records))
    done = WORK[client, work](task)
    measured = done if isinstance(done, dict) else _on_loop(done)
    if "records_per_s" in measured:
        measured["client_rss_mb"] = _peak_kib() / 1024
    print(json.dumps(measured))


def _peak_kib() -> int:
    """Return the peak of resident memory; rusage would include the parent process."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def _on_loop(work: Coroutine[Any, Any, Measured]) -> Measured:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


if __name__ == "__main__":
    main()

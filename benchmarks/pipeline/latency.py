"""The latency of a micro-batch: a record from topic to topic through an otherwise idle stream.

```
produce at t0 ──► source topic ──► micro-batch of the contender ──► target topic ──► consumed at t1     t1 - t0
```
The stream starts a micro-batch as soon as it sees records (Spark's default trigger). The next record is sent after the
last one has arrived, after a random pause, so that it meets any phase of the stream's polling. Both contenders take
turns, in blocks, each with a new stream. Then the stream is left without records: its processor time a second is
what waiting costs.
"""

from __future__ import annotations

import random
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.pipeline.queries import CLIENTS, PARTITIONS, Queries
from benchmarks.pipeline.usage import processor_seconds

BLOCKS = 2
RECORDS = 60  # of a block
WARM_UP = 10  # micro-batches that do not count: Java still compiles
LONGEST_PAUSE = 0.1
IDLE_SECONDS = 5.0
TIMEOUT = 60.0


def latencies(queries: Queries, records: int = RECORDS) -> dict[str, dict[str, Any]]:
    """Return milliseconds from the producer to the consumer by contender, and processor seconds an idle second."""
    found: dict[str, dict[str, Any]] = {name: {"milliseconds": [], "idle": []} for name in CLIENTS}
    for _ in range(BLOCKS):
        for contender in CLIENTS:
            measured, idle = _block(queries, contender, records)
            found[contender]["milliseconds"] += measured
            found[contender]["idle"].append(idle)
    return found


def _block(queries: Queries, contender: str, records: int) -> tuple[list[float], float]:
    source, target = queries.new_topic(), queries.new_topic()
    stream = queries.copy_stream(contender, source, target)
    bootstrap = queries.server.bootstrap
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "latency", "fetch.wait.max.ms": 10_000})
    consumer.assign([TopicPartition(target, partition, 0) for partition in range(PARTITIONS)])
    try:
        times = [_one(producer, consumer, source, b"%d" % number) for number in range(WARM_UP + records)]
        before = sum(processor_seconds(queries.server.process.pid).values())
        time.sleep(IDLE_SECONDS)
        idle = (sum(processor_seconds(queries.server.process.pid).values()) - before) / IDLE_SECONDS
    finally:
        consumer.close()
        stream.stop()
    queries.delete_topic(source)
    queries.delete_topic(target)
    return [round(each * 1000, 1) for each in times[WARM_UP:]], round(idle, 3)


def _one(producer: Producer, consumer: Consumer, topic: str, value: bytes) -> float:
    """Return the seconds of one record."""
    time.sleep(random.uniform(0, LONGEST_PAUSE))
    start = time.perf_counter()
    producer.produce(topic, value, value)
    producer.flush()
    while True:
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise TimeoutError(f"record {value!r} did not arrive")
        if not message.error() and message.value() == value:
            return time.perf_counter() - start

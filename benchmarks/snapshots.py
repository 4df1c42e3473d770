"""How long a snapshot and a restore take: `python -m benchmarks.snapshots [--dir DIR] [--rounds N]`.

| state | change before each restore |
|---|---|
| small: 10 topics of 3 partitions, 1,000 records, a group | a record in each partition, a commit, a new topic |
| large: 100 partitions, 1 GB | a record in each partition |
| large, put back | the topic is deleted |

Beside the time on the clock, which a busy machine makes longer, it prints the processor time of the process.

`--dir` is where the broker's temporary directory is made; the default is memory. Appends are made in the process,
because only the restore is measured; the commits are those of librdkafka, whose connections the restore closes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable

from confluent_kafka import Consumer, TopicPartition

from odradek.broker.broker import Broker
from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.testing.snapshots import Snapshots
from odradek.protocol.records.batch_builder import BatchBuilder

GROUP = "g"
SMALL_TOPICS, SMALL_PARTITIONS, SMALL_RECORDS = 10, 3, 1000
LARGE_PARTITIONS, LARGE_BYTES, LARGE_BATCH = 100, 1 << 30, 1 << 18


def _batch(size: int, records: int = 1) -> memoryview:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(1_700_000_000_000, None, bytes(size))
    return memoryview(builder.build())


async def _append(broker: Broker, topic: str, index: int, batch: memoryview) -> None:
    partition = broker.services.partitions.get(topic, index)
    appended = partition.append_as_leader(batch, 1, broker.services.clock.time_ms())
    if isinstance(appended, asyncio.Future):
        await appended


async def _append_everywhere(broker: Broker, size: int = 100) -> None:
    for partition in tuple(broker.services.partitions):
        if not partition.topic.startswith("__"):
            await _append(broker, partition.topic, partition.index, _batch(size))


async def _prepare_small(broker: Broker, consumer: Consumer) -> None:
    for number in range(SMALL_TOPICS):
        await create_topic(broker.services.metadata, f"t{number}", SMALL_PARTITIONS)
    await broker.services.partitions.settled()
    for number in range(SMALL_RECORDS):
        topic, index = f"t{number % SMALL_TOPICS}", number // SMALL_TOPICS % SMALL_PARTITIONS
        await _append(broker, topic, index, _batch(100))
    await asyncio.to_thread(_commit, consumer, 1)


def _commit(consumer: Consumer, offset: int) -> None:
    consumer.commit(offsets=[TopicPartition("t0", 0, offset)], asynchronous=False)


async def _prepare_large(broker: Broker, consumer: Consumer) -> None:
    await create_topic(broker.services.metadata, "t0", LARGE_PARTITIONS)
    await broker.services.partitions.settled()
    for number in range(LARGE_BYTES // LARGE_BATCH):
        await _append(broker, "t0", number % LARGE_PARTITIONS, _batch(LARGE_BATCH - 100))
    await asyncio.to_thread(_commit, consumer, 1)


async def _measure(
    name: str,
    rounds: int,
    prepare: Callable[[Broker, Consumer], Awaitable[None]],
    change: Callable[[Broker, Consumer, int], Awaitable[None]],
) -> None:
    async with Broker() as broker:
        config = {"bootstrap.servers": broker.bootstrap, "group.id": GROUP, "log.connection.close": False}
        consumer = Consumer({**config, "enable.auto.commit": False})
        await prepare(broker, consumer)
        snapshots = Snapshots(broker)
        began = time.perf_counter()
        state = await snapshots.snapshot()
        taken = time.perf_counter() - began
        seconds, processor = [], []
        for number in range(rounds):
            await change(broker, consumer, number)
            began, used = time.perf_counter(), time.process_time()
            await snapshots.restore(state)
            processor.append(time.process_time() - used)
            seconds.append(time.perf_counter() - began)
        await asyncio.to_thread(consumer.close)
        print(
            f"{name:<16} snapshot {taken * 1000:6.1f} ms   restore p50 {statistics.median(seconds) * 1000:6.1f} ms"
            f"   min {min(seconds) * 1000:6.1f}   max {max(seconds) * 1000:6.1f}"
            f"   processor p50 {statistics.median(processor) * 1000:6.1f} ms",
            flush=True,
        )


async def _change_small(broker: Broker, consumer: Consumer, number: int) -> None:
    await _append_everywhere(broker)
    await asyncio.to_thread(_commit, consumer, number + 2)
    await create_topic(broker.services.metadata, f"new{number}", 1)
    await broker.services.partitions.settled()


async def _change_large(broker: Broker, _: Consumer, __: int) -> None:
    await _append_everywhere(broker)


async def _delete_large(broker: Broker, _: Consumer, __: int) -> None:
    await delete_topic(broker.services.metadata, name="t0")
    await broker.services.partitions.settled()


async def _run(rounds: int) -> None:
    await _measure("small", rounds, _prepare_small, _change_small)
    await _measure("large", rounds, _prepare_large, _change_large)
    await _measure("large, put back", rounds, _prepare_large, _delete_large)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure snapshots and restores.")
    parser.add_argument("--dir", help="where the broker's temporary directory is made; default: memory")
    parser.add_argument("--rounds", type=int, default=50, help="restores of each kind")
    options = parser.parse_args()
    if options.dir is not None:
        os.environ["TMPDIR"] = options.dir
    asyncio.run(_run(options.rounds))


if __name__ == "__main__":
    main()

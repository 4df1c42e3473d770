"""The cost of an fsync before each acknowledgement: `python -m benchmarks.durability [DIRECTORY]`.

Each client waits for the acknowledgement of a record of 1 KiB before it sends the next, to one partition or to sixteen,
with different values of flush.messages. The directory matters: in a memory file system an fsync costs nothing. Each
cell of the Markdown table takes 5 s; the two of a row are measured in succession.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from odradek.broker.broker import Broker
from odradek.client import Admin, NewTopic, Producer
from odradek.protocol.plural import pluralize

SECONDS = 5.0
VALUE = bytes(1024)
ROWS = ((1, 1), (16, 1), (16, 16), (64, 16))  # clients, partitions
SETTINGS: dict[str, dict[str, str]] = {"default": {}, "flush.messages=1": {"flush.messages": "1"}}


def fsync_ms(directory: Path) -> float:
    """Return the milliseconds of one write and fsync there, without other load."""
    with tempfile.TemporaryFile(dir=directory) as file:
        started = perf_counter()
        for _ in range(50):
            file.write(VALUE)
            file.flush()
            os.fsync(file.fileno())
        return (perf_counter() - started) / 50 * 1000


async def send(producer: Producer, topic: str, partition: int, until: float, times: list[float]) -> None:
    while (started := perf_counter()) < until:
        await (await producer.send(topic, VALUE, partition=partition))
        times.append(perf_counter() - started)


class Acks(NamedTuple):
    """Acknowledgements a second, and the median and the 99th percentile of their milliseconds."""

    rate: float
    p50: float
    p99: float

    def __str__(self) -> str:
        return f"{self.rate:,.0f} acks/s, {self.p50:.1f} ms (p99 {self.p99:.1f})"


async def measure(broker: Broker, topic: str, clients: int, partitions: int) -> Acks:
    # One producer for each, because the records of one producer share batches.
    producers = [Producer(broker.bootstrap, linger_ms=0) for _ in range(clients)]
    for producer in producers:
        await producer.start()
    times: list[float] = []
    until = perf_counter() + SECONDS
    await asyncio.gather(
        *(send(producer, topic, index % partitions, until, times) for index, producer in enumerate(producers))
    )
    for producer in producers:
        await producer.close()
    times.sort()
    return Acks(len(times) / SECONDS, *(times[len(times) * part // 100] * 1000 for part in (50, 99)))


async def main(parent: str | None) -> None:
    with tempfile.TemporaryDirectory(dir=parent) as directory:
        print(f"| one write and fsync: {fsync_ms(Path(directory)):.2f} ms | {' | '.join(SETTINGS)} | rate |")
        print("|---|---|---|---|")
        async with Broker({"log.dirs": directory}) as broker, Admin(broker.bootstrap) as admin:
            for clients, partitions in ROWS:
                found = []
                for name, configs in SETTINGS.items():
                    topic = f"{name.replace('=', '-')}-{clients}-{partitions}"
                    await admin.create_topics([NewTopic(topic, partitions, 1, configs=configs)])
                    found.append(await measure(broker, topic, clients, partitions))
                cells = " | ".join(map(str, found))
                ratio = found[1].rate / found[0].rate
                load = f"{pluralize(clients, 'client')}, {pluralize(partitions, 'partition')}"
                print(f"| {load} | {cells} | x{ratio:.2f} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))

"""A broker behind an `UnreliableProxy` that leaves and returns, for clients whose outcomes are checked afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from odradek.broker.broker import Broker
from odradek.client import ClientError, Consumer, ConsumerRecord, Producer
from tests.client.outcomes.proxy import UnreliableProxy
from tests.peers.server import free_port

PARTITIONS = 2

IMPATIENT: dict[str, Any] = {
    "request_timeout_ms": 300,
    "connect_timeout_ms": 300,
    "retry_backoff_ms": 10,
    "retry_backoff_max_ms": 50,
    "reconnect_backoff_ms": 10,
    "reconnect_backoff_max_ms": 50,
    "max_block_ms": 1000,
    "delivery_timeout_ms": 1500,
}
"""Settings of a producer that times out before the proxy's longest delay is over."""


@dataclass
class Disturbed:
    """The broker and its proxy. `bootstrap` is the proxy's address."""

    broker: Broker
    proxy: UnreliableProxy
    bootstrap: str
    random: Random

    @asynccontextmanager
    async def faults(self, rate: float) -> AsyncIterator[None]:
        """Disturb connections at this rate, and restart the broker, until the end of the block."""
        self.proxy.rate = rate
        over = asyncio.Event()
        restarting = asyncio.create_task(self._restart_until(over))
        try:
            yield
        finally:
            self.proxy.rate = 0
            over.set()
            await restarting

    async def _restart_until(self, over: asyncio.Event) -> None:
        while not over.is_set():
            try:
                async with asyncio.timeout(self.random.uniform(1, 3)):
                    await over.wait()
            except TimeoutError:
                await (self.broker.kill() if self.random.random() < 0.5 else self.broker.stop())
                await asyncio.sleep(self.random.uniform(0, 0.4))
                await self.broker.start()

    async def start_producer(self, **settings: Any) -> Producer:
        """Start a producer; the broker may be away for a while."""
        while True:
            producer = Producer(self.bootstrap, linger_ms=1, **IMPATIENT, **settings)
            try:
                await producer.start()
            except ClientError:
                continue
            return producer

    async def read(self, topic: str, isolation_level: Any = "read_uncommitted") -> list[ConsumerRecord]:
        """All records of a topic, in the order of partitions and offsets."""
        records = []
        async with Consumer(self.bootstrap, auto_offset_reset="earliest", isolation_level=isolation_level) as consumer:
            partitions = [(topic, index) for index in range(PARTITIONS)]
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            for partition, end in ends.items():
                while await consumer.position(partition) < end:
                    records += await consumer.poll(100)
        return sorted(records, key=lambda record: (record.partition, record.offset))


@asynccontextmanager
async def disturbed(directory: Path, seed: int) -> AsyncIterator[Disturbed]:
    """Start a broker behind a proxy, which has no faults yet."""
    random = Random(seed)
    port, proxy_port = free_port(), free_port()
    properties = {
        "log.dirs": str(directory),
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}",
        "num.partitions": str(PARTITIONS),
        "transaction.state.log.num.partitions": "1",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    async with Broker(properties) as broker:
        proxy = UnreliableProxy(proxy_port, port, random)
        async with proxy.listening():
            yield Disturbed(broker, proxy, f"127.0.0.1:{proxy_port}", random)

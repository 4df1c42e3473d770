"""Kill a broker near the rolls of a log's segments, many times, and check the log of the bundled producer.

One idempotent producer, with small batches and the maximum of requests in flight, runs through all the kills. It is
connected through a relay that loses responses: before each kill the broker has written five batches without a response
to the producer, and segments are so small that these are often on both sides of a roll. When every record is
acknowledged, the record at offset n must be the n-th one: none lost, duplicated or out of order.

    python -m tests.crash.kill_at_rolls --kills 200
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from odradek.client import Admin, Consumer, NewTopic, Producer, RecordMetadata, TopicPartition
from tests.peers import odradek
from tests.peers.server import Server, free_port
from tests.tcp_server import tcp_server

TOPIC = "rolled"
IN_FLIGHT = 5
BURST = 20
TIMEOUT = 60.0

UNANSWERED = 1000
"""The most records without a response; they are in many more than five batches."""


class Outcome(NamedTuple):
    """The result of a run. `failed` records were not acknowledged, and their futures failed."""

    records: int
    failed: int
    missing: int
    doubled: int
    out_of_order: int


class Relay:
    """A proxy between clients and a broker; from `lose_answers` to `pass_answers` it drops the responses.

    A connection closes when either side closes it.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._loses = False
        self._lost = asyncio.Semaphore(0)
        self._connections: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Serve clients on this port, and close their connections at the end."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._connections.add(asyncio.create_task(self._serve(reader, writer)))

        async with tcp_server(connected, port):
            yield
        async with asyncio.timeout(TIMEOUT):
            await asyncio.gather(*self._connections)

    async def lose_answers(self, count: int) -> None:
        """Drop all responses from now on; return after `count` were dropped."""
        self._lost = asyncio.Semaphore(0)
        self._loses = True
        async with asyncio.timeout(TIMEOUT):
            for _ in range(count):
                await self._lost.acquire()

    def pass_answers(self) -> None:
        self._loses = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(_close, writer)
            try:
                broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                return
            stack.push_async_callback(_close, broker_writer)
            directions = {
                asyncio.create_task(self._pass_requests(reader, broker_writer)),
                asyncio.create_task(self._pass_answers(broker_reader, writer)),
            }
            _, other = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in other:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = await reader.readexactly(4)
            answer = await reader.readexactly(int.from_bytes(size, "big"))
            if self._loses:
                self._lost.release()
            else:
                writer.write(size + answer)
                await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    await asyncio.gather(writer.wait_closed(), return_exceptions=True)


class Writer:
    """Sends numbered records until `stop`."""

    def __init__(self, producer: Producer) -> None:
        self.futures: list[asyncio.Future[RecordMetadata]] = []
        self._producer = producer
        self._room = asyncio.Semaphore(UNANSWERED)
        self._has_sent = asyncio.Event()
        self._is_stopped = False
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not self._is_stopped:
            for _ in range(BURST):
                await self._room.acquire()
                future = await self._producer.send(TOPIC, b"%09d" % len(self.futures) + b"." * 60, partition=0)
                future.add_done_callback(lambda _: self._room.release())
                self.futures.append(future)
            self._has_sent.set()
            await asyncio.sleep(0)

    async def progress(self) -> None:
        """Return when a record that is sent after this call is acknowledged."""
        async with asyncio.timeout(TIMEOUT):
            self._has_sent.clear()
            await self._has_sent.wait()
            await asyncio.wait([self.futures[-1]])

    async def stop(self) -> None:
        """Return when every record is acknowledged or has failed."""
        self._is_stopped = True
        await self._task
        await self._producer.flush()


def properties(relay_port: int, segment_bytes: int) -> Mapping[str, str]:
    """Properties of the broker. The recovery point is updated often, so recovery begins at the start of a segment."""
    return {
        "log.segment.bytes": str(segment_bytes),
        "log.flush.offset.checkpoint.interval.ms": "100",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay_port}",
    }


async def kill_and_check(
    server: Server, relay_port: int, kills: int, chance: random.Random, report_every: int = 0
) -> Outcome:
    """Kill a running server so many times."""
    relay = Relay(server.port)
    async with relay.listening(relay_port):
        bootstrap = f"127.0.0.1:{relay_port}"
        async with Admin(bootstrap) as admin:
            (await admin.create_topics([NewTopic(TOPIC, 1)])).values_or_raise()
        async with Producer(
            bootstrap, batch_size=1000, linger_ms=0, retry_backoff_ms=10, retry_backoff_max_ms=50
        ) as producer:
            writer = Writer(producer)
            for kill in range(1, kills + 1):
                await writer.progress()
                await asyncio.sleep(chance.uniform(0, 0.1))
                await relay.lose_answers(IN_FLIGHT)
                await asyncio.to_thread(server.kill)
                relay.pass_answers()
                await asyncio.to_thread(server.start)
                if report_every and not kill % report_every:
                    print(f"{kill} kills, {len(writer.futures)} records", flush=True)
            await writer.progress()
            await writer.stop()
        return _compare(writer.futures, await _values(bootstrap))


async def _values(bootstrap: str) -> list[int]:
    values: list[int] = []
    async with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        end = (await consumer.end_offsets([partition]))[partition]
        while len(values) < end:
            values += [int((record.value or b"")[:9]) for record in await consumer.poll()]
    return values


def _compare(futures: list[asyncio.Future[RecordMetadata]], values: list[int]) -> Outcome:
    acknowledged = {number for number, future in enumerate(futures) if future.exception() is None}
    return Outcome(
        records=len(values),
        failed=len(futures) - len(acknowledged),
        missing=len(acknowledged - set(values)),
        doubled=len(values) - len(set(values)),
        out_of_order=sum(after < before for before, after in pairwise(values)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.kill_at_rolls", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--segment-bytes", type=int, default=65536)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="kill-at-rolls-") as directory:
        server = odradek.prepare(Path(directory), properties(port, arguments.segment_bytes)).start()
        began = time.monotonic()
        try:
            chance = random.Random(arguments.seed)
            outcome = asyncio.run(kill_and_check(server, port, arguments.kills, chance, report_every=20))
        finally:
            server.kill()
    print(f"{arguments.kills} kills in {time.monotonic() - began:.0f} s: {outcome}")


if __name__ == "__main__":
    main()

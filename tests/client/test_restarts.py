"""A broker that stops, dies or freezes while a producer and a consumer run: it causes a delay and no loss."""

from __future__ import annotations

import asyncio
import signal
import sys

import pytest

from odradek.client import Admin, Consumer, NewTopic, Producer, RecordMetadata
from odradek.client.config import GroupProtocol
from tests.peers.server import Server

pytestmark = [pytest.mark.crash, pytest.mark.servers("odradek", "apache")]

COUNT = 3000


async def make_topic(server: Server, topic: str) -> None:
    async with Admin(server.bootstrap) as admin:
        (await admin.create_topics([NewTopic(topic, 2)])).values_or_raise()


async def write(producer: Producer, topic: str, first: int) -> list[asyncio.Future[RecordMetadata]]:
    return [await producer.send(topic, b"%d" % number, partition=number % 2) for number in range(first, first + COUNT)]


async def read(consumer: Consumer, found: dict[int, list[bytes | None]], total: int) -> None:
    while sum(map(len, found.values())) < total:
        record = await anext(consumer)
        found[record.partition].append(record.value)


@pytest.mark.parametrize("how", ["stopped", "killed", "frozen"])
async def test_nothing_is_lost_or_doubled_or_out_of_order(server: Server, topic: str, how: str) -> None:
    await make_topic(server, topic)
    found: dict[int, list[bytes | None]] = {0: [], 1: []}
    async with (
        Producer(server.bootstrap, batch_size=1000, request_timeout_ms=3000) as producer,
        Consumer(server.bootstrap, auto_offset_reset="earliest", request_timeout_ms=3000) as consumer,
    ):
        first = await write(producer, topic, 0)
        await producer.flush()
        consumer.assign(await consumer.partitions_for(topic))
        await read(consumer, found, COUNT)
        second = asyncio.create_task(write(producer, topic, COUNT))
        await asyncio.sleep(0)
        if how == "frozen":
            server.process.send_signal(signal.SIGSTOP)
            reading = asyncio.create_task(read(consumer, found, 2 * COUNT))
            await asyncio.wait([reading], timeout=5)
            server.process.send_signal(signal.SIGCONT)
        else:
            await asyncio.to_thread(server.stop if how == "stopped" else server.kill)
            reading = asyncio.create_task(read(consumer, found, 2 * COUNT))
            await asyncio.to_thread(server.start)
        await producer.flush()
        acknowledged = [await future for future in (*first, *await second)]
        assert len(acknowledged) == 2 * COUNT
        await reading
    for partition in (0, 1):
        assert found[partition] == [b"%d" % number for number in range(partition, 2 * COUNT, 2)]


async def read_committing(consumer: Consumer, count: int) -> list[bytes | None]:
    """Read so many values, in the order of their offsets in each partition, and commit them."""
    values: list[bytes | None] = []
    while len(values) < count:
        values += [record.value for record in await consumer.poll()]
        await consumer.commit()
    return values


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_continues_after_its_broker_was_killed(
    server: Server, topic: str, protocol: GroupProtocol
) -> None:
    await make_topic(server, topic)
    async with (
        Producer(server.bootstrap, request_timeout_ms=3000) as producer,
        Consumer(
            server.bootstrap,
            group_id=f"group-{topic}",
            group_protocol=protocol,
            auto_offset_reset="earliest",
            request_timeout_ms=3000,
            heartbeat_interval_ms=200,
        ) as consumer,
    ):
        await write(producer, topic, 0)
        await producer.flush()
        await consumer.subscribe(topic)
        found = await read_committing(consumer, COUNT)
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        await write(producer, topic, COUNT)
        found += await read_committing(consumer, COUNT)
        await producer.flush()
        assert await consumer.poll(timeout_ms=500) == []
    assert sorted(int(value or b"-1") for value in found) == list(range(2 * COUNT))


MEMBER = """
import asyncio, sys
from odradek.client import Consumer

async def main():
    async with Consumer(
        sys.argv[1], group_id=f"group-{sys.argv[2]}", auto_offset_reset="earliest", enable_auto_commit=False,
        session_timeout_ms=1500, heartbeat_interval_ms=200,
    ) as consumer:
        await consumer.subscribe(sys.argv[2])
        while True:
            for record in await consumer.poll(timeout_ms=100, max_records=10):
                print(record.partition, record.offset, flush=True)
                await consumer.commit({(record.topic, record.partition): record.offset + 1})

asyncio.run(main())
"""


async def test_another_member_takes_over_from_a_killed_one(server: Server, topic: str) -> None:
    await make_topic(server, topic)
    group = f"group-{topic}"
    async with Producer(server.bootstrap) as producer:
        first = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEMBER, server.bootstrap, topic, stdout=asyncio.subprocess.PIPE
        )
        assert first.stdout is not None
        await (await producer.send(topic, b"", partition=0))
        await (await producer.send(topic, b"", partition=1))
        seen = [await first.stdout.readline() for _ in range(2)]
        second = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MEMBER, server.bootstrap, topic, stdout=asyncio.subprocess.PIPE
        )
        assert second.stdout is not None
        async with Admin(server.bootstrap) as admin:
            await until_shares_are(admin, group, 1, 1)
            sent = [await producer.send(topic, b"", partition=number % 2) for number in range(200)]
            await asyncio.gather(*sent)
            rest = [asyncio.create_task(read_lines(stream)) for stream in (first.stdout, second.stdout)]
            first.kill()
            await until_shares_are(admin, group, 2)
            lag = (await admin.group_lag(group)).values_or_raise()
            while any(one.lag for one in lag.values()):
                lag = (await admin.group_lag(group)).values_or_raise()
        second.kill()
        lines = [*seen, *await rest[0], *await rest[1]]
        await asyncio.gather(first.wait(), second.wait())
    everything = {b"%d %d\n" % (partition, offset) for partition in range(2) for offset in range(101)}
    assert set(lines) == everything
    assert len(lines) - len(everything) <= 1  # at most the record that the killed member had printed and not committed


async def until_shares_are(admin: Admin, group: str, *sizes: int) -> None:
    """Wait until the members of the group have so many partitions each."""
    shares: list[int] = []
    while shares != sorted(sizes):
        described = (await admin.describe_groups([group])).value(group)
        shares = sorted(len(member.assignment) for member in described.members)


async def read_lines(stream: asyncio.StreamReader) -> list[bytes]:
    return [line async for line in stream]

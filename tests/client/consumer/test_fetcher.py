"""The fetcher over a scripted network with failures, and with corrupt batches."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from odradek.client import (
    AuthorizationError,
    BrokerError,
    Consumer,
    CorruptRecordsError,
    UnknownTopicError,
)
from odradek.client.config import Address
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, LeaderIdAndEpoch
from tests.client.reading import fill, one_log, read, values
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import batch, drop_unread, now, numbers, serve_and_drop
from tests.client.virtual_time import simulated

T0 = ("t", 0)


# Corrupt batches.


@simulated
async def test_a_wrong_checksum_raises_after_the_records_before_the_batch() -> None:
    network, log = one_log(30)
    log.data[-1] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 20)) == numbers(20)
        for _ in range(2):
            with pytest.raises(
                CorruptRecordsError, match=r"read the batch at offset 20 on t-0: the checksum is wrong. Seek past it"
            ) as raised:
                await consumer.poll()
            assert raised.value.offset == 20
            assert await consumer.position(T0) == 20
        fill(log, 10)
        consumer.seek(T0, 30)
        assert values(await read(consumer, 10)) == numbers(40)[30:]


@simulated
async def test_a_wrong_checksum_stops_iteration_too() -> None:
    network, log = one_log(30)
    log.data[-1] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert [(await anext(consumer)).value for _ in range(20)] == numbers(20)
        with pytest.raises(CorruptRecordsError):
            await anext(consumer)


@simulated
async def test_a_batch_that_expands_too_far_raises_after_the_records_before_it() -> None:
    network, log = one_log(10)
    log.add(batch([bytes(128 << 20)], 10, codec=Codec.ZSTD))
    fill(log, 9)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)
        with pytest.raises(CorruptRecordsError, match=r"offset 10 on t-0: zstd data expand to more than 134217728"):
            await consumer.poll()
        consumer.seek(T0, 11)
        assert values(await read(consumer, 9)) == numbers(20)[11:]


@simulated
async def test_checksums_are_ignored_without_check_crcs() -> None:
    network, log = one_log(10)
    log.data[17] ^= 1
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest", check_crcs=False) as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_bytes_that_are_no_batch_raise() -> None:
    network, log = one_log(20)
    size = log.headers()[0].size
    log.data[size + 16] = 77  # the magic of the second batch
    log.read = lambda offset, max_bytes: bytes(log.data if offset < 10 else log.data[size:])  # type: ignore[method-assign]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 10)) == numbers(10)
        with pytest.raises(CorruptRecordsError, match=r"offset 10 on t-0: .*magic 77"):
            await consumer.poll()


@simulated
async def test_an_incomplete_first_batch_raises() -> None:
    network, log = one_log(10)
    log.read = lambda offset, max_bytes: bytes(log.data[:50])  # type: ignore[method-assign]
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        with pytest.raises(CorruptRecordsError, match="offset 0 on t-0: the broker sent only a part of it"):
            await consumer.poll()


# Failures of requests.


@pytest.mark.parametrize("how", [drop_unread, serve_and_drop])
@simulated
async def test_a_lost_fetch_is_repeated(how: Any) -> None:
    network, _ = one_log(100)
    network.brokers[1].script("Fetch", how)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        assert values(await read(consumer, 100)) == numbers(100)


@simulated
async def test_fetches_follow_the_leader() -> None:
    network, log = one_log(50, brokers=2)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 50)
        network.move(log, to=2)
        fill(log, 50)
        assert values(await read(consumer, 50)) == numbers(100)[50:]


@simulated
async def test_an_error_that_names_the_new_leader_causes_no_backoff() -> None:
    network, log = one_log(50, brokers=2)

    async def name_the_leader(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].current_leader = LeaderIdAndEpoch(log.leader, log.leader_epoch)
        return answer

    async with Consumer(
        network.bootstrap, network=network, retry_backoff_ms=900, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([T0])
        await consumer.position(T0)
        network.move(log, to=2)
        network.brokers[1].script("Fetch", name_the_leader)
        start = now()
        assert len(await read(consumer, 50)) == 50
        assert now() - start < 0.1


@simulated
async def test_a_broker_that_is_down_for_a_while_causes_a_delay_and_no_loss() -> None:
    network, log = one_log(10)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        await read(consumer, 10)
        network.brokers[1].go_down()
        assert await consumer.poll(timeout_ms=20000) == []
        fill(log, 10)
        network.brokers[1].come_up()
        start = now()
        assert values(await read(consumer, 10)) == numbers(20)[10:]
        assert now() - start < 3


@simulated
async def test_an_unauthorized_topic_raises_at_each_poll() -> None:
    network, _ = one_log(10)

    async def refuse(broker: Broker, request: FetchRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.responses[0].partitions[0].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answer

    network.brokers[1].script("Fetch", refuse, refuse)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(AuthorizationError, match="fetch on t-0 at broker1:9092"):
                await consumer.poll()
        assert values(await read(consumer, 10)) == numbers(10)


@simulated
async def test_a_missing_topic_raises_and_delays_no_other() -> None:
    network, _ = one_log(10)
    async with Consumer(
        network.bootstrap, network=network, auto_offset_reset="earliest", default_api_timeout_ms=5000
    ) as consumer:
        consumer.assign([T0, ("nowhere", 0)])
        assert values(await read(consumer, 10)) == numbers(10)
        assert now() < 1
        with pytest.raises(UnknownTopicError, match="find a topic on nowhere"):
            await consumer.poll()
        assert now() == pytest.approx(5, abs=0.5)
        with pytest.raises(UnknownTopicError, match=r"look up an offset on t-3: .*the topic has 1 partition"):
            await consumer.end_offsets([("t", 3)])


@simulated
async def test_a_topic_that_is_deleted_while_its_offset_is_looked_up_is_a_typed_error() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network, default_api_timeout_ms=5000) as consumer:
        await consumer.end_offsets([T0])
        lookup = asyncio.create_task(consumer.end_offsets([T0, ("late", 0)]))
        await asyncio.sleep(1)  # of virtual time: it waits for the second topic
        del network.logs["t", 0]
        await asyncio.sleep(1)
        network.create("late")
        with pytest.raises(BrokerError, match="look up an offset on t-0"):
            await lookup


class SlowNetwork(ScriptedNetwork):
    """A network that connects only while `is_open` is set; `waits` is set when a connection has to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waits = asyncio.Event()

    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        if not self.is_open.is_set():
            self.waits.set()
            await self.is_open.wait()
        return await super().connect(address, protocol)


@simulated
async def test_partitions_may_be_unassigned_while_the_fetcher_connects() -> None:
    network = SlowNetwork()
    for topic in ("before", "now"):
        fill(network.create(topic)[0], 10)
    async with Consumer(
        network.bootstrap,
        network=network,
        auto_offset_reset="earliest",
        metadata_max_age_ms=1000,
        connect_timeout_ms=60000,
    ) as consumer:
        consumer.assign([("before", 0)])
        network.is_open.clear()
        assert await consumer.poll(timeout_ms=100) == []
        assert network.waits.is_set()
        consumer.assign([("now", 0)])
        await asyncio.sleep(5)
        network.is_open.set()
        records = await consumer.poll(timeout_ms=5000)
    assert {record.topic for record in records} == {"now"}


# Random failures.


@pytest.mark.parametrize("seed", range(10))
@simulated
async def test_every_record_is_read_once_and_in_order_through_random_failures(seed: int) -> None:
    chance = random.Random(seed)
    network = ScriptedNetwork(brokers=3, piece_size=chance.choice([7, 1000, 100000]), with_sessions=seed % 2 == 1)
    logs = network.create("t", 4)

    async def trouble() -> None:
        for _ in range(60):
            await asyncio.sleep(chance.expovariate(10))
            broker = network.brokers[chance.randrange(1, 4)]
            broker.sessions.forget()
            match chance.randrange(5):
                case 0:
                    broker.script("Fetch", chance.choice([drop_unread, serve_and_drop]))
                case 1:
                    broker.drop_connections()
                case 2:
                    network.move(chance.choice(logs), to=chance.randrange(1, 4))
                case 3:
                    broker.go_down()
                    await asyncio.sleep(chance.expovariate(1))
                    broker.come_up()
                case _:
                    for log in logs:
                        fill(log, 20)
        for log in logs:
            fill(log, 500 - log.end_offset % 500)

    async with Consumer(
        network.bootstrap,
        network=network,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=chance.choice([100, 1000, 100000]),
    ) as consumer:
        consumer.assign(await consumer.partitions_for("t"))
        troubling = asyncio.create_task(trouble())
        seen: dict[int, list[bytes | None]] = {log.partition: [] for log in logs}
        while not troubling.done() or any(len(seen[log.partition]) < log.end_offset for log in logs):
            for record in await consumer.poll(timeout_ms=100, max_records=chance.randrange(1, 500)):
                seen[record.partition].append(record.value)
        await troubling
    for log in logs:
        assert seen[log.partition] == log.values()

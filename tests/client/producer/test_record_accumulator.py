"""The record accumulator over a scripted network: timeouts, memory, back-pressure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    BufferFullError,
    ClosedError,
    DeliveryTimeoutError,
    PossiblyPersistedError,
    Producer,
)
from odradek.protocol.errors import ErrorCode
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, now, numbers, refuse
from tests.client.virtual_time import simulated

# Timeouts.


@simulated
async def test_a_record_that_is_not_acknowledged_in_time_fails_with_the_reason() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(
        network.bootstrap, network=network, request_timeout_ms=1000, delivery_timeout_ms=5000
    ) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].go_down()
        start = now()
        with pytest.raises(DeliveryTimeoutError, match="send records on t-0: not acknowledged within 5000 ms"):
            await (await producer.send("t", b"2"))
        assert now() - start == pytest.approx(5, abs=0.1)


@simulated
async def test_a_delivery_timeout_contains_the_reason_why_the_leader_is_unreachable() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(
        network.bootstrap, network=network, request_timeout_ms=1000, delivery_timeout_ms=5000
    ) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].go_down()
        with pytest.raises(
            DeliveryTimeoutError,
            match=r"within 5000 ms; the last attempt: connect at broker1:9092 \(broker 1\): connection refused\. They",
        ):
            await (await producer.send("t", b"2"))


@simulated
async def test_a_delivery_timeout_names_the_missing_leader_of_a_partition() -> None:
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")
    async with Producer(
        network.bootstrap, network=network, request_timeout_ms=1000, delivery_timeout_ms=5000
    ) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[log.leader].go_down()
        with pytest.raises(DeliveryTimeoutError, match=r"the last attempt: find the leader on t-0 .*NOT_AVAILABLE"):
            await (await producer.send("t", b"2"))


@simulated
async def test_a_delivery_timeout_of_a_waiting_batch_contains_the_error_of_the_one_before() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(
        network.bootstrap, network=network, batch_size=0, linger_ms=0, request_timeout_ms=500, delivery_timeout_ms=500
    ) as producer:
        network.brokers[1].script("Produce", *[refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 20)
        sent = [await producer.send("t", value) for value in numbers(3)]
        for future in sent:
            with pytest.raises(DeliveryTimeoutError, match=r"the last attempt: .*NOT_ENOUGH_REPLICAS"):
                await future


@simulated
async def test_a_full_buffer_error_contains_the_reason_why_the_leader_is_unreachable() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network, buffer_memory=1500, max_block_ms=1000) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].go_down()
        await asyncio.sleep(1)  # so that no request is sent into the lost connection
        sent = await producer.send("t", bytes(1000))
        with pytest.raises(BufferFullError, match=r"full for 1000 ms; the last attempt: .*connection refused"):
            await producer.send("t", bytes(1000))
        await producer.close(0)
        with pytest.raises(ClosedError):
            await sent


@simulated
async def test_an_unreachable_broker_is_one_warning_for_each_outage(caplog: pytest.LogCaptureFixture) -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        for _ in range(2):
            await (await producer.send("t", b"1"))
            network.brokers[1].go_down()
            sent = await producer.send("t", b"2")
            await asyncio.sleep(30)
            network.brokers[1].come_up()
            await sent
    refused = [record.levelname for record in caplog.records if "connection refused" in record.message]
    assert refused.count("WARNING") == 2


@simulated
async def test_the_memory_of_a_failed_batch_stays_in_use_while_its_request_is_in_flight() -> None:
    """CVE-2026-35554: otherwise its bytes could be those of another batch, for another topic, when they are sent."""
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(
        network.bootstrap,
        network=network,
        request_timeout_ms=1000,
        delivery_timeout_ms=1005,
        linger_ms=5,
        buffer_memory=1500,
        max_block_ms=10,
    ) as producer:
        first = await producer.send("t", bytes(1000))
        with pytest.raises(BufferFullError, match="buffer_memory of 1500 bytes was full for 10 ms"):
            await producer.send("t", bytes(1000))
        with pytest.raises(PossiblyPersistedError, match="the log or not"):
            await first
        await asyncio.sleep(0.5)
        await (await producer.send("t", b"2"))
    assert log.values()[-1] == b"2"
    network.check_buffers()


@simulated
async def test_records_after_a_failed_one_are_written_once_with_a_new_epoch() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(
        network.bootstrap,
        network=network,
        batch_size=0,
        linger_ms=0,
        request_timeout_ms=500,
        delivery_timeout_ms=500,
        retry_backoff_max_ms=100,
    ) as producer:
        await (await producer.send("t", b"before"))
        network.brokers[1].script("Produce", *[refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 8)
        given_up = await producer.send("t", b"given up")
        await asyncio.sleep(0.45)
        sent = [await producer.send("t", value) for value in numbers(10)]
        with pytest.raises(DeliveryTimeoutError, match=r"the last attempt: .*NOT_ENOUGH_REPLICAS"):
            await given_up
        assert [at.offset for at in await asyncio.gather(*sent)] == list(range(1, 11))
    assert log.values() == [b"before", *numbers(10)]
    assert log.headers()[-1].producer_epoch > 0


@simulated
async def test_close_waits_no_longer_than_its_timeout() -> None:
    network = ScriptedNetwork()
    network.create("t")
    producer = Producer(network.bootstrap, network=network)
    await producer.start()
    await (await producer.send("t", b"1"))
    network.brokers[1].go_down()
    await asyncio.sleep(1)
    sent = await producer.send("t", b"2")
    start = now()
    await producer.close(timeout_ms=2000)
    assert now() - start == pytest.approx(2)
    with pytest.raises(ClosedError, match="closed before they were acknowledged"):
        await sent
    with pytest.raises(ClosedError):
        await producer.send("t", b"3")


@simulated
async def test_a_cancelled_wait_for_a_record_has_no_side_effect() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        first = await producer.send("t", b"1")
        second = await producer.send("t", b"2")
        first.cancel()
        assert (await second).offset == 1
    assert log.values() == [b"1", b"2"]


# Back-pressure.


@simulated
async def test_send_waits_for_memory_in_order() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(network.bootstrap, network=network, buffer_memory=3000) as producer:
        senders = [asyncio.create_task(producer.send("t", value.ljust(1000))) for value in numbers(10)]
        await gate.reached.wait()
        await asyncio.sleep(1)
        assert sum(sender.done() for sender in senders) == 2
        gate.open()
        await asyncio.gather(*senders)
    assert log.values() == [value.ljust(1000) for value in numbers(10)]


async def slowly(broker: Broker, request: Any) -> Any:
    await asyncio.sleep(0.002)
    return await broker.serve(request)


@simulated
async def test_send_runs_a_few_batches_ahead_of_a_slow_leader_and_no_more() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", *[slowly] * 200)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0, max_in_flight=3) as producer:
        sent = []
        for value in numbers(200):
            sent.append(await producer.send("t", value))
            assert sum(not future.done() for future in sent) <= 2 * 3 + 1
    assert log.values() == numbers(200)


@simulated
async def test_send_fills_the_memory_when_the_leader_is_silent() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        start = now()
        sent = [await producer.send("t", value) for value in numbers(100)]
        assert now() - start < 100 * 0.0051
        assert not any(future.done() for future in sent)
        gate.open()
    assert log.values() == numbers(100)


@simulated
async def test_a_record_larger_than_the_memory_is_sent_alone() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, buffer_memory=100) as producer:
        for value in (b"1", bytes(5000), b"3"):
            await producer.send("t", value)
    assert log.values() == [b"1", bytes(5000), b"3"]

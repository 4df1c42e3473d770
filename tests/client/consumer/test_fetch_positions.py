"""The positions of a consumer over a scripted network: seeks, `auto_offset_reset`, lookups of offsets."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from odradek.client import (
    AuthorizationError,
    BrokerError,
    ConfigurationError,
    Consumer,
    NoOffsetError,
    OffsetOutOfRangeError,
    TimeLimitError,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsRequest
from tests.client.reading import fill, one_log, read, values
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, batch, drop_unread, now, numbers
from tests.client.virtual_time import simulated

T0 = ("t", 0)


@pytest.mark.parametrize(("policy", "position"), [("earliest", 20), ("latest", 100)])
@simulated
async def test_auto_offset_reset_sets_the_first_position(policy: Any, position: int) -> None:
    network, log = one_log(100)
    log.start_offset = 20
    async with Consumer(network.bootstrap, network=network, auto_offset_reset=policy) as consumer:
        consumer.assign([T0])
        assert await consumer.position(T0) == position


@pytest.mark.parametrize(
    ("policy", "position"), [("by_duration:PT30M", 2), ("by_duration:P1DT1H", 0), ("by_duration:PT0.5S", 3)]
)
@simulated
async def test_by_duration_begins_at_the_first_record_that_is_not_older(policy: str, position: int) -> None:
    network, log = one_log()
    present = time.time_ns() // 1_000_000
    for offset, age_s in enumerate((7200, 3600, 60)):
        log.add(batch([b"x"], offset, timestamp=present - 1000 * age_s))
    async with Consumer(network.bootstrap, network=network, auto_offset_reset=policy) as consumer:
        consumer.assign([T0])
        assert await consumer.position(T0) == position


@simulated
async def test_auto_offset_reset_none_raises_until_the_user_seeks() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        for _ in range(2):
            with pytest.raises(
                NoOffsetError, match=r'read on t-0: .*"none". Call seek\(\), or set auto_offset_reset to'
            ):
                await consumer.poll()
        with pytest.raises(NoOffsetError):
            await consumer.position(T0)
        consumer.seek(T0, 95)
        assert values(await read(consumer, 5)) == numbers(100)[95:]


@simulated
async def test_a_seek_into_a_batch_skips_its_earlier_records() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        for offset in (35, 97, 3):
            consumer.seek(T0, offset)
            assert (await consumer.poll())[0].offset == offset


@simulated
async def test_a_seek_to_the_ends_of_64_bits() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        for offset in (-(1 << 63) - 1, -(1 << 63), -1, 1 << 63):
            with pytest.raises(ConfigurationError, match=rf"offset {offset} is not from 0 to 2\^63 - 1"):
                consumer.seek(T0, offset)
        for offset in (101, (1 << 63) - 2, (1 << 63) - 1):
            consumer.seek(T0, offset)
            with pytest.raises(OffsetOutOfRangeError):
                await consumer.poll()
        consumer.seek(T0, 0)
        assert (await consumer.poll())[0].offset == 0


@simulated
async def test_seeks_to_the_beginning_the_end_and_a_time() -> None:
    network, log = one_log(100)
    log.start_offset = 10
    async with Consumer(network.bootstrap, network=network) as consumer:
        consumer.assign([T0])
        await consumer.seek_to_beginning()
        assert await consumer.position(T0) == 10
        await consumer.seek_to_end(T0)
        assert await consumer.position(T0) == 100
        await consumer.seek_to_timestamp(42, T0)
        assert (await consumer.poll())[0].offset == 42
        await consumer.seek_to_timestamp(1000)
        assert await consumer.position(T0) == 100


@simulated
async def test_offsets_are_looked_up_without_an_assignment() -> None:
    network = ScriptedNetwork(brokers=2)
    for log in network.create("t", 2):
        fill(log, 30)
        log.start_offset = 10
    async with Consumer(network.bootstrap, network=network) as consumer:
        partitions = await consumer.partitions_for("t")
        assert await consumer.beginning_offsets(partitions) == dict.fromkeys(partitions, 10)
        assert await consumer.end_offsets(partitions) == dict.fromkeys(partitions, 30)
        found = await consumer.offsets_for_times({("t", 0): 17, ("t", 1): 1000})
        first = found[partitions[0]]
        assert first is not None
        assert (first.offset, first.timestamp) == (17, 17)
        assert found[partitions[1]] is None


@simulated
async def test_a_seek_does_not_wait_for_a_fetch_at_the_broker() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, fetch_max_wait_ms=20000) as consumer:
        consumer.assign([T0])
        assert await consumer.poll(timeout_ms=100) == []
        assert await consumer.poll(timeout_ms=30000) == []
        start = now()
        consumer.seek(T0, 50)
        assert values(await read(consumer, 50)) == numbers(100)[50:]
        assert now() - start < 0.1


@simulated
async def test_records_fetched_before_a_seek_are_not_returned_after_it() -> None:
    network, _ = one_log(100)
    gate = Gate()
    network.brokers[1].script("Fetch", gate)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        polling = asyncio.create_task(consumer.poll(max_records=1))
        await gate.reached.wait()
        consumer.seek(T0, 80)
        gate.open()
        assert values(await polling) == [b"80"]


@simulated
async def test_auto_offset_reset_replaces_an_offset_out_of_range() -> None:
    network, log = one_log(100)
    log.start_offset = 30
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 5)
        assert (await consumer.poll())[0].offset == 30
        consumer.seek(T0, 500)
        assert (await consumer.poll())[0].offset == 30


@simulated
async def test_an_offset_out_of_range_raises_without_a_policy_until_a_seek() -> None:
    network, _ = one_log(100)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="none") as consumer:
        consumer.assign([T0])
        consumer.seek(T0, 500)
        for _ in range(2):
            with pytest.raises(
                OffsetOutOfRangeError, match=r"fetch on t-0 at broker1:9092 \(broker 1\): OFFSET_OUT_OF"
            ):
                await consumer.poll()
        assert await consumer.position(T0) == 500
        consumer.seek(T0, 99)
        assert values(await consumer.poll()) == [b"99"]


@simulated
async def test_partitions_that_stay_assigned_keep_their_positions() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 3):
        fill(log, 20)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await read(consumer, 40)
        consumer.assign([("t", 1), ("t", 2)])
        assert consumer.assignment() == [("t", 1), ("t", 2)]
        assert await consumer.position(("t", 1)) == 20
        assert {record.partition for record in await read(consumer, 20)} == {2}
        with pytest.raises(ConfigurationError, match="use a partition on t-0: it is not assigned"):
            await consumer.position(("t", 0))


@simulated
async def test_paused_partitions_return_no_records() -> None:
    network = ScriptedNetwork()
    for log in network.create("t", 2):
        fill(log, 50)
    async with Consumer(network.bootstrap, network=network, auto_offset_reset="earliest") as consumer:
        consumer.assign([("t", 0), ("t", 1)])
        await consumer.poll(max_records=1)
        consumer.pause(("t", 0))
        assert {record.partition for record in await read(consumer, 49)} <= {1}
        consumer.resume()
        rest = await read(consumer, 50)
        assert {record.partition for record in rest} >= {0}


def refuse_offsets(code: ErrorCode) -> Any:
    async def answer(broker: Broker, request: ListOffsetsRequest) -> Any:
        answer: Any = await broker.serve(request)
        answer.topics[0].partitions[0].error_code = code
        return answer

    return answer


@simulated
async def test_a_lookup_is_retried_until_every_leader_has_responded() -> None:
    network = ScriptedNetwork(brokers=2)
    logs = network.create("t", 4)
    for log in logs:
        fill(log, 10 + 10 * log.partition)
    network.brokers[1].script("ListOffsets", refuse_offsets(ErrorCode.NOT_LEADER_OR_FOLLOWER), drop_unread)
    network.brokers[2].script("ListOffsets", refuse_offsets(ErrorCode.OFFSET_NOT_AVAILABLE))
    logs[3].leader = -1
    async with Consumer(network.bootstrap, network=network) as consumer:
        asking = asyncio.create_task(consumer.end_offsets(await consumer.partitions_for("t")))
        await asyncio.sleep(3)
        assert not asking.done()
        network.move(logs[3], to=1)
        assert await asking == {("t", partition): 10 + 10 * partition for partition in range(4)}


@simulated
async def test_a_lookup_that_times_out_raises_the_last_error() -> None:
    network, _ = one_log(10)
    async with Consumer(network.bootstrap, network=network, default_api_timeout_ms=3000) as consumer:
        await consumer.partitions_for("t")
        network.brokers[1].script("ListOffsets", *[refuse_offsets(ErrorCode.OFFSET_NOT_AVAILABLE)] * 100)
        with pytest.raises(BrokerError, match=r"look up an offset on t-0 at broker1:9092 .*OFFSET_NOT_AVAILABLE"):
            await consumer.end_offsets([T0])
        assert now() == pytest.approx(3, abs=0.1)
        network.brokers[1].clear_scripts()
        network.brokers[1].script("ListOffsets", Gate())
        with pytest.raises(TimeLimitError, match="look up an offset: no response within 3000 ms"):
            await consumer.end_offsets([T0])


@simulated
async def test_a_lookup_fails_at_once_with_a_final_error() -> None:
    network, _ = one_log(10)
    network.brokers[1].script("ListOffsets", refuse_offsets(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    async with Consumer(network.bootstrap, network=network) as consumer:
        with pytest.raises(AuthorizationError, match="look up an offset on t-0"):
            await consumer.end_offsets([T0])
        assert now() < 0.1


@pytest.mark.parametrize("timeout_ms", [None, 60_000])
@simulated
async def test_a_poll_raises_the_time_limit_of_a_lookup(timeout_ms: int | None) -> None:
    """Without a time-out of its own, or before it, a broker that is stuck must not look like an empty partition."""
    network, _ = one_log(1)
    async with Consumer(network.bootstrap, network=network, default_api_timeout_ms=5000) as consumer:
        consumer.assign([T0])
        network.brokers[1].script("ListOffsets", Gate())
        start = now()
        with pytest.raises(TimeLimitError, match="no response within 5000 ms"):
            await consumer.poll(timeout_ms)
        assert 5 <= now() - start < 6

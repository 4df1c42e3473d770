"""Groups as Prometheus reads them, from a broker in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from odradek.broker.broker import Broker
from odradek.broker.testing.clock import ManualClock
from tests.handlers.group_members import GroupMember, find_coordinator
from tests.handlers.requests import NOW, batch, create, produce
from tests.wire import Wire

LABELS = ("consumergroup", "group", "topic", "partition", "protocol", "state")
Samples = dict[tuple[str, ...], float]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def broker(clock: ManualClock, request: pytest.FixtureRequest) -> AsyncIterator[Broker]:
    properties = {"metrics.port": "0", "metrics.partition.limit": getattr(request, "param", "1000")}
    async with Broker(properties, clock=clock) as started:
        yield started


async def scrape(broker: Broker) -> Samples:
    """The values of what a scrape gives by name and labels."""
    async with Wire("127.0.0.1", broker.metrics_port) as connection:
        connection.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        _, _, body = (await connection.reader.read()).partition(b"\r\n\r\n")
    return {
        (sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)): sample.value
        for family in parse_text(body.decode())
        for sample in family.samples
        if "group" in sample.name
    }


async def a_group_that_lags(broker: Broker, clock: ManualClock) -> None:
    """Five records a second apart; the group `g` has one member and has read two of them; 10 s have passed since."""
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        for _ in range(5):
            await produce(wire, "t", batch(b"a"))
        await find_coordinator(wire, "g")
        member = GroupMember(wire, "g")
        await member.become_only_member()
        await member.commit("t", 2)
    clock.advance(10_000)
    await broker.group_lag.refresh()


async def test_groups_are_counted_by_state(broker: Broker, clock: ManualClock) -> None:
    await a_group_that_lags(broker, clock)

    samples = await scrape(broker)

    manager = "kafka_coordinator_group_groupmetadatamanager_"
    assert samples[manager + "numgroups",] == samples[manager + "numgroupsstable",] == 1
    assert samples[manager + "numgroupsempty",] == samples[manager + "numgroupspreparingrebalance",] == 0
    assert samples[manager + "numoffsets",] == 1
    coordinator = "kafka_server_group_coordinator_metrics_"
    assert samples[coordinator + "group_count", "classic"] == 1
    assert samples[coordinator + "group_count", "consumer"] == 0
    assert samples[coordinator + "consumer_group_count", "stable"] == 0


async def test_offsets_and_lag_have_the_exporters_names(broker: Broker, clock: ManualClock) -> None:
    await a_group_that_lags(broker, clock)

    samples = await scrape(broker)

    assert samples["kafka_consumergroup_members", "g"] == 1
    assert samples["kafka_consumergroup_current_offset", "g", "t", "0"] == 2
    assert samples["kafka_consumergroup_current_offset_sum", "g", "t"] == 2
    assert samples["kafka_consumergroup_lag", "g", "t", "0"] == samples["kafka_consumergroup_lag_sum", "g", "t"] == 3
    assert samples["kafka_consumergroup_group_lag", "g", "t", "0"] == 3
    assert samples["kafka_consumergroup_group_max_lag", "g"] == 3
    assert samples["kafka_consumergroup_group_lag_seconds", "g", "t", "0"] == 10
    assert samples["kafka_consumergroup_group_max_lag_seconds", "g"] == 10


async def test_the_lag_of_a_group_that_has_read_everything_is_0(broker: Broker, clock: ManualClock) -> None:
    await a_group_that_lags(broker, clock)
    async with Wire("127.0.0.1", broker.port) as wire:
        outsider = GroupMember(wire, "tool")
        await outsider.commit("t", 5)

    samples = await scrape(broker)

    assert samples["kafka_consumergroup_lag", "tool", "t", "0"] == 0
    assert samples["kafka_consumergroup_group_lag_seconds", "tool", "t", "0"] == 0


@pytest.mark.parametrize("broker", ["0"], indirect=True)
async def test_above_the_limit_there_are_only_sums(broker: Broker, clock: ManualClock) -> None:
    await a_group_that_lags(broker, clock)

    samples = await scrape(broker)

    assert samples["kafka_consumergroup_lag_sum", "g", "t"] == 3
    assert samples["kafka_consumergroup_group_max_lag", "g"] == 3
    assert not any(name.endswith(("_lag", "_current_offset", "_lag_seconds")) for name, *at in samples if len(at) == 3)

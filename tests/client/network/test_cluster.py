"""The cluster of a client: bootstrap, metadata, and changes of addresses."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from odradek.client import BootstrapError, Consumer, Producer
from odradek.client.config import Address, ClientConfig, parse_bootstrap_servers
from odradek.client.network.cluster import Cluster
from odradek.protocol.messages.metadata import MetadataRequest
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import now
from tests.client.virtual_time import simulated

ALIAS = Address("alias", 9092)


@simulated
async def test_one_bootstrap_server_that_answers_is_enough() -> None:
    network = ScriptedNetwork(brokers=3)
    network.create("t", 3)
    network.brokers[1].go_down()
    servers = [*network.bootstrap[:1], "elsewhere:9092", *network.bootstrap[1:2]]
    for _ in range(5):  # they are tried in random order
        async with Producer(servers, network=network) as producer:
            assert (await (await producer.send("t", b"", partition=1))).partition == 1


@simulated
async def test_the_error_without_any_response_lists_all_attempts() -> None:
    network = ScriptedNetwork(brokers=2)
    network.brokers[1].go_down()
    network.brokers[2].go_down()
    with pytest.raises(BootstrapError) as raised:
        async with Producer(network.bootstrap, network=network):
            pass
    assert "broker1:9092: connection refused" in str(raised.value)
    assert "broker2:9092: connection refused" in str(raised.value)
    assert raised.value.retriable
    assert len(asyncio.all_tasks()) == 1


@simulated
async def test_the_bootstrap_connection_is_kept_if_its_address_is_advertised() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b""))
        assert len(network.brokers[1].transports) == 1


@simulated
async def test_connections_use_the_advertised_address() -> None:
    network = ScriptedNetwork()
    network.create("t")
    network.aliases[ALIAS] = network.brokers[1]
    async with Producer(str(ALIAS), network=network) as producer:
        await (await producer.send("t", b""))
        [transport] = network.brokers[1].transports
        assert transport.dialled == network.brokers[1].address


@simulated
async def test_an_unreachable_advertised_address_is_an_error() -> None:
    network = ScriptedNetwork()
    network.aliases[ALIAS] = network.brokers[1]
    network.unreachable.add(network.brokers[1].address)
    with pytest.raises(BootstrapError) as raised:
        async with Producer(str(ALIAS), network=network):
            pass
    assert str(raised.value) == (
        "find the cluster: broker1:9092 (broker 1): connection refused. "
        "Check the bootstrap servers, and advertised.listeners of the brokers"
    )


@simulated
async def test_a_cluster_whose_addresses_all_changed_is_found_through_the_bootstrap_servers() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    broker = network.brokers[1]
    network.aliases[ALIAS] = broker
    async with Producer(str(ALIAS), network=network) as producer:
        await (await producer.send("t", b"1"))
        broker.address = Address("moved", 9092)
        broker.drop_connections()
        assert (await (await producer.send("t", b"2"))).offset == 1
    assert log.values() == [b"1", b"2"]


@simulated
async def test_metadata_requests_back_off_without_a_leader() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(
        network.bootstrap, network=network, retry_backoff_ms=100, retry_backoff_max_ms=1000
    ) as producer:
        await (await producer.send("t", b"1"))
        log.leader = -1
        before = len(network.brokers[1].received(MetadataRequest))
        start = now()
        sent = await producer.send("t", b"2")
        await asyncio.sleep(10)
        requests = len(network.brokers[1].received(MetadataRequest)) - before
        assert 5 <= requests <= 25
        network.move(log, to=1)
        await sent
        assert now() - start < 13


@simulated
async def test_metadata_requests_leave_out_topics_that_are_no_longer_used() -> None:
    network = ScriptedNetwork()
    for topic in ("before", "now", "elsewhere"):
        network.create(topic)
    async with Consumer(network.bootstrap, network=network, metadata_max_age_ms=10000) as consumer:
        consumer.assign([("before", 0)])
        await consumer.partitions_for("elsewhere")
        await consumer.end_offsets([("elsewhere", 0)])
        consumer.assign([("now", 0)])
        await asyncio.sleep(25)
    assert requested_topics(network)[-1] == ["now"]


def requested_topics(network: ScriptedNetwork) -> list[list[str | None]]:
    return [[topic.name for topic in request.topics or ()] for request in network.brokers[1].received(MetadataRequest)]


@simulated
async def test_old_metadata_are_refreshed() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Consumer(network.bootstrap, network=network, metadata_max_age_ms=10000) as consumer:
        await consumer.partitions_for("t")
        before = len(network.brokers[1].received(MetadataRequest))
        await asyncio.sleep(35)
        assert len(network.brokers[1].received(MetadataRequest)) - before == 3


@simulated
async def test_concurrent_lookups_of_a_topic_share_a_request() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Consumer(network.bootstrap, network=network) as consumer:
        before = len(network.brokers[1].received(MetadataRequest))
        await asyncio.gather(*(consumer.partitions_for("t") for _ in range(20)))
        assert len(network.brokers[1].received(MetadataRequest)) - before == 1


@simulated
async def test_a_refresh_that_has_just_ended_is_not_joined() -> None:
    network = ScriptedNetwork()
    network.create("t")
    cluster = Cluster(ClientConfig(bootstrap_servers=parse_bootstrap_servers(network.bootstrap)), network)
    await cluster.start()
    cluster.track("a test", ["t"])
    ended = cluster.request_refresh()
    while not ended.done():  # noqa: ASYNC110 - ends before the callbacks of the task run
        await asyncio.sleep(0)
    refresh = cluster.request_refresh()
    assert refresh is not ended
    await asyncio.sleep(0)
    assert cluster.request_refresh() is refresh
    await cluster.close()


@pytest.mark.parametrize("kind", [Producer, Consumer])
@simulated
async def test_nothing_is_left_running_after_close(kind: Any) -> None:
    network = ScriptedNetwork(brokers=2)
    network.create("t", 2)
    async with kind(network.bootstrap, network=network) as user:
        if isinstance(user, Producer):
            await user.send("t", b"")
        else:
            user.assign(await user.partitions_for("t"))
            await user.poll(timeout_ms=1000)
    assert not any(broker.transports for broker in network.brokers.values())
    assert len(asyncio.all_tasks()) == 1


@simulated
async def test_start_retries_until_a_bootstrap_server_responds() -> None:
    network = ScriptedNetwork()
    network.brokers[1].go_down()
    cluster = Cluster(ClientConfig(bootstrap_servers=parse_bootstrap_servers(network.bootstrap)), network)
    asyncio.get_running_loop().call_later(20, network.brokers[1].come_up)
    began = now()
    await cluster.start(60_000)
    assert cluster.image.brokers
    assert 20 <= now() - began <= 21.2  # the last pause is retry_backoff_max_ms with its jitter
    await cluster.close()


@simulated
async def test_start_gives_up_after_its_timeout() -> None:
    network = ScriptedNetwork()
    network.brokers[1].go_down()
    cluster = Cluster(ClientConfig(bootstrap_servers=parse_bootstrap_servers(network.bootstrap)), network)
    began = now()
    with pytest.raises(BootstrapError, match=r"broker1:9092: connection refused; retried for 5000 ms\. Check"):
        await cluster.start(5000)
    assert now() - began == pytest.approx(5)
    await cluster.close()


@simulated
async def test_the_timeout_of_start_ends_an_attempt_without_a_response() -> None:
    cluster = Cluster(ClientConfig(bootstrap_servers=parse_bootstrap_servers("silent:9092")), _SilentNetwork())
    began = now()
    with pytest.raises(BootstrapError, match="no bootstrap server responded within 5000 ms"):
        await cluster.start(5000)
    assert now() - began == pytest.approx(5)
    await cluster.close()


@simulated
async def test_start_does_not_retry_an_unknown_host_name() -> None:
    cluster = Cluster(ClientConfig(bootstrap_servers=parse_bootstrap_servers("a:9092,b:9092")), _UnknownHosts())
    began = now()
    with pytest.raises(BootstrapError, match="a:9092: the name cannot be resolved"):
        await cluster.start(60_000)
    assert now() == began
    await cluster.close()


class _SilentNetwork:
    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        await asyncio.sleep(1e9)
        raise AssertionError


class _UnknownHosts:
    async def connect(self, address: Address, protocol: asyncio.BufferedProtocol) -> asyncio.WriteTransport:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


@simulated
async def test_metadata_are_refreshed_after_a_failure() -> None:
    """The one that is due while no broker can be reached is not the last."""
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, metadata_max_age_ms=10_000) as producer:
        await (await producer.send("t", b""))
        for broker in network.brokers.values():
            broker.go_down()
        await asyncio.sleep(15)
        for broker in network.brokers.values():
            broker.come_up()
        network.move(log, to=2)
        await asyncio.sleep(5)
        known = len(network.brokers[1].received(MetadataRequest) + network.brokers[2].received(MetadataRequest))
        await asyncio.sleep(100)
        asked = len(network.brokers[1].received(MetadataRequest) + network.brokers[2].received(MetadataRequest))
        assert asked - known == 10

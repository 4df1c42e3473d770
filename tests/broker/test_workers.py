"""Several brokers as the workers of one machine, or of two, in one process and on a metadata store that they share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.startup.surroundings import Worker
from odradek.client import Consumer, Producer, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from odradek.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.fetch import FetchRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.requests import batch, fetch_request, produce_request
from tests.wire import Wire

COUNT = 3
EVERYWHERE = "PLAINTEXT://0.0.0.0:0"


class Machines:
    """Workers by node id, on one store."""

    def __init__(self, directory: Path, store: InMemoryStore, stack: AsyncExitStack) -> None:
        self.brokers: dict[int, Broker] = {}
        self._directory = directory
        self._store = store
        self._stack = stack

    async def start(self, node_id: int, host: str = "machine", **properties: str) -> Broker:
        base = {"node.id": str(node_id), "log.dirs": str(self._directory / str(node_id)), "num.workers": str(COUNT)}
        others = {name.replace("_", "."): text for name, text in properties.items()}
        broker = Broker(base | others, store=self._store, worker=Worker(host, None))
        self.brokers[node_id] = await self._stack.enter_async_context(broker)
        return broker

    async def until(self, condition: Callable[[MetadataImage], bool]) -> None:
        """Wait until the image of every broker that runs is so."""
        for broker in self.brokers.values():
            metadata = broker.services.metadata
            while not condition(metadata.image):
                await metadata.wait_for_revision(metadata.image.revision + 1)
            await broker.services.partitions.settled()

    async def stop(self, node_id: int) -> None:
        await self.brokers.pop(node_id).close()
        await self.until(lambda image: node_id not in image.brokers)

    async def start_workers(self, **properties: str) -> list[Broker]:
        """Start the workers of one machine; return when each knows all."""
        started = [await self.start(1 + 1000 * worker, **properties) for worker in range(COUNT)]
        await self.until(lambda image: len(image.brokers) == COUNT)
        return started


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    store = InMemoryStore()
    async with AsyncExitStack() as stack:
        yield Machines(tmp_path, store, stack)
    await store.close()


async def _create(wire: Wire, topic: CreatableTopic) -> tuple[ErrorCode, str | None]:
    [row] = (await wire.ask(CreateTopicsRequest([topic]), 5)).topics
    return ErrorCode(row.error_code), row.error_message


async def test_each_worker_has_its_share_of_the_partitions(machines: Machines) -> None:
    first, *_ = await machines.start_workers()

    async with Wire("127.0.0.1", first.port) as wire:
        await _create(wire, CreatableTopic("t", 6, 1))
        for name in "uvw":
            await _create(wire, CreatableTopic(name, 1, 1))

    await machines.until(lambda image: "w" in image.topics)
    for node_id, broker in machines.brokers.items():
        led = [each for each in broker.services.partitions if each.is_leader]
        assert len(led) == 3, node_id


async def test_one_machine_refuses_a_second_replica(machines: Machines) -> None:
    first, *_ = await machines.start_workers()

    async with Wire("127.0.0.1", first.port) as wire:
        code, message = await _create(wire, CreatableTopic("t", 1, 2))
        assert code is ErrorCode.INVALID_REPLICATION_FACTOR
        assert message == (
            "Unable to replicate the partition 2 time(s): the 3 known brokers run on 1 host: workers of one host fail"
            " together, so that it holds at most one replica of a partition (unless workers.count.as.brokers is true)"
        )
        code, message = await _create(wire, CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [1, 1001])]))
        assert code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert "workers of one host" in str(message)
        await _create(wire, CreatableTopic("t", 1, 1))
        assignment = [CreatePartitionsAssignment([1, 1001])]
        response = await wire.ask(CreatePartitionsRequest([CreatePartitionsTopic("t", 2, assignment)], 5000), 3)
        assert response.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_two_machines_have_two_replicas_and_keep_records_when_one_stops(machines: Machines) -> None:
    for node_id, host in ((1, "a"), (1001, "a"), (2, "b"), (1002, "b")):
        await machines.start(node_id, host)
    await machines.until(lambda image: len(image.brokers) == 4)
    brokers = machines.brokers
    async with Wire("127.0.0.1", brokers[1].port) as wire:
        assert (await _create(wire, CreatableTopic("t", 4, 2)))[0] is ErrorCode.NONE
    async with Producer(f"127.0.0.1:{brokers[1].port}", acks="all") as producer:
        for partition in range(4):
            await producer.send("t", f"{partition}".encode(), partition=partition)

    await machines.stop(1)
    await machines.stop(1001)

    await machines.until(lambda image: {each.leader for each in image.topics["t"].partitions} == {2, 1002})
    async with Consumer(f"127.0.0.1:{brokers[2].port}", auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("t", partition) for partition in range(4)])
        assert {record.value async for record in _first(consumer, 4)} == {b"0", b"1", b"2", b"3"}


async def _first(consumer: Consumer, count: int) -> AsyncIterator[object]:
    async for record in consumer:
        yield record
        count -= 1
        if count == 0:
            return


async def test_internal_topics_of_one_machine_have_one_replica(machines: Machines) -> None:
    first, *_ = await machines.start_workers(offsets_topic_num_partitions="6", transaction_state_log_num_partitions="6")

    async with Wire("127.0.0.1", first.port) as wire:
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"])
            [row] = (await wire.ask(request, 4)).coordinators
            assert row.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    topics = first.services.metadata.image.topics
    for name in ("__consumer_offsets", "__transaction_state"):
        assert [each.replicas for each in topics[name].partitions] == [[1], [1001], [2001]] * 2
    assert topics["__transaction_state"].configs["min.insync.replicas"] == "1"


async def test_internal_topics_wait_for_the_worker_that_starts_last(machines: Machines) -> None:
    first = await machines.start(1)
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["k"])

    async with Wire("127.0.0.1", first.port) as wire:
        [row] = (await wire.ask(request, 4)).coordinators
        assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not first.services.metadata.image.topics
        for node_id in (1001, 2001):
            await machines.start(node_id)
        await machines.until(lambda image: len(image.brokers) == COUNT)
        while (await wire.ask(request, 4)).coordinators[0].error_code != ErrorCode.NONE:
            pass

    [topic] = first.services.metadata.image.topics.values()
    assert {each.leader for each in topic.partitions} == {1, 1001, 2001}


@pytest.mark.parametrize(
    ("others", "properties"),
    [({2: "b"}, {}), ({1001: "a"}, {"workers_count_as_brokers": "true"})],
    ids=["two hosts", "workers count as brokers"],
)
async def test_internal_topics_of_a_cluster_have_as_many_replicas_as_configured(
    machines: Machines, others: dict[int, str], properties: dict[str, str]
) -> None:
    first = await machines.start(1, "a", **properties)
    for node_id, host in others.items():
        await machines.start(node_id, host, **properties)
    await machines.until(lambda image: len(image.brokers) == 2)

    async with Wire("127.0.0.1", first.port) as wire:
        [row] = (await wire.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)).coordinators

    assert row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert first.services.metadata.image.topics == {}, "offsets.topic.replication.factor is 3"


async def test_groups_and_transactions_have_coordinators_on_all_workers(machines: Machines) -> None:
    """Each group reads what a transaction with a coordinator of its own wrote to all workers, by any bootstrap."""
    properties = {"offsets_topic_num_partitions": "6", "transaction_state_log_num_partitions": "6"}
    brokers = await machines.start_workers(
        **properties, group_initial_rebalance_delay_ms="0", listeners=EVERYWHERE, num_partitions="3"
    )
    bootstraps = [f"127.0.0.1:{each.port}" for each in brokers]
    names = ["a", "b", "c", "d", "e", "f"]
    coordinators = set()
    async with Wire("127.0.0.1", brokers[0].port) as wire:
        await _create(wire, CreatableTopic("t", 3, 1))
        for key_type in (0, 1):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=names)
            rows = (await wire.ask(request, 4)).coordinators
            coordinators.add((key_type, frozenset(row.node_id for row in rows)))
    assert coordinators == {(0, frozenset(machines.brokers)), (1, frozenset(machines.brokers))}
    await machines.until(lambda image: "__transaction_state" in image.topics)

    async def write(number: int, name: str) -> None:
        async with Producer(bootstraps[number % COUNT], transactional_id=name) as producer:
            for aborts in (True, False):
                with suppress(LookupError):
                    async with producer.transaction():
                        for partition in range(3):
                            value = f"{name} {partition} {'aborted' if aborts else 'committed'}"
                            await producer.send("t", value.encode(), partition=partition)
                        await producer.flush()
                        if aborts:
                            raise LookupError

    async def read(number: int, name: str) -> set[bytes]:
        async with Consumer(
            bootstraps[(number + 1) % COUNT],
            group_id=name,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as consumer:
            await consumer.subscribe(["t"])
            values = {record.value async for record in _first(consumer, 3 * len(names))}
            await consumer.commit()
            return values

    await asyncio.gather(*(write(*each) for each in enumerate(names)))
    read_by_groups = await asyncio.gather(*(read(*each) for each in enumerate(names)))

    assert read_by_groups == [
        {f"{name} {partition} committed".encode() for name in names for partition in range(3)}
    ] * len(names)


@pytest.mark.parametrize("dialled", ["127.0.0.1", "127.0.0.2"])
async def test_clients_get_all_workers_at_the_host_that_they_dialled(machines: Machines, dialled: str) -> None:
    brokers = await machines.start_workers(listeners=EVERYWHERE)
    addresses = [(broker.config.node_id, dialled, broker.port) for broker in brokers]

    for broker in brokers:
        async with Wire(dialled, broker.port) as wire:
            found = await wire.ask(MetadataRequest([]), 9)
            described = await wire.ask(DescribeClusterRequest(), 2)
        assert [(row.node_id, row.host, row.port) for row in found.brokers] == addresses
        assert [(row.broker_id, row.host, row.port) for row in described.brokers] == addresses


async def test_coordinators_and_leaders_are_at_the_dialled_host(machines: Machines) -> None:
    first, *_ = brokers = await machines.start_workers(listeners=EVERYWHERE, offsets_topic_num_partitions="6")
    addresses = {(broker.config.node_id, "127.0.0.2", broker.port) for broker in brokers}
    async with Wire("127.0.0.2", first.port) as wire:
        await _create(wire, CreatableTopic("t", 3, 1))
        await wire.ask(FindCoordinatorRequest(coordinator_keys=["a"]), 4)
        found = await wire.ask(FindCoordinatorRequest(coordinator_keys=["a", "b", "c"]), 4)
        produced = await wire.ask(produce_request("t", batch(b"x"), partition=1), 12)
        fetched = await wire.ask(_by_id(first, "t", partition=1), 16)

    assert {(row.node_id, row.host, row.port) for row in found.coordinators} == addresses
    [second] = [each for each in addresses if each[0] == 1001]
    assert produced.responses[0].partition_responses[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    for response in (produced, fetched):
        assert [(row.node_id, row.host, row.port) for row in response.node_endpoints] == [second]


def _by_id(broker: Broker, topic: str, partition: int) -> FetchRequest:
    request = fetch_request(topic, partition=partition)
    request.topics[0].topic_id = broker.services.metadata.image.topics[topic].topic_id
    return request


async def test_a_worker_that_is_down_is_listed_at_the_dialled_host(machines: Machines) -> None:
    first, second, _ = await machines.start_workers(listeners=EVERYWHERE)
    port = second.port
    await machines.stop(1001)

    async with Wire("127.0.0.2", first.port) as wire:
        response = await wire.ask(DescribeClusterRequest(include_fenced_brokers=True), 2)

    assert [(row.broker_id, row.host, row.port) for row in response.brokers if row.is_fenced] == [
        (1001, "127.0.0.2", port)
    ]


async def test_brokers_elsewhere_have_their_registered_addresses(machines: Machines) -> None:
    first = await machines.start(1, "a", listeners=EVERYWHERE)
    other = await machines.start(2, "b")
    advertised = await machines.start(1001, "a", advertised_listeners="PLAINTEXT://broker.example:7000")
    await machines.until(lambda image: len(image.brokers) == 3)

    async with Wire("127.0.0.2", first.port) as wire:
        found = await wire.ask(MetadataRequest([]), 9)
    async with Wire("127.0.0.1", advertised.port) as wire:
        found_there = await wire.ask(MetadataRequest([]), 9)

    assert [(row.node_id, row.host, row.port) for row in found.brokers if row.node_id != 1001] == [
        (1, "127.0.0.2", first.port),
        (2, "127.0.0.1", other.port),
    ]
    assert [(row.node_id, row.host) for row in found_there.brokers] == [
        (1, "0.0.0.0"), (2, "127.0.0.1"), (1001, "broker.example"),
    ]  # fmt: skip


async def test_each_worker_shows_the_number_of_workers(machines: Machines) -> None:
    for broker in await machines.start_workers():
        request = DescribeConfigsRequest([DescribeConfigsResource(4, str(broker.config.node_id), ["num.workers"])])
        async with Wire("127.0.0.1", broker.port) as wire:
            [result] = (await wire.ask(request, 4)).results
        assert [(each.name, each.value) for each in result.configs] == [("num.workers", "3")]

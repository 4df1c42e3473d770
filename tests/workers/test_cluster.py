"""Partitions that machines replicate among each other: only the replicas of the stopped machine move."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import worker_properties
from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.randomness import SeededRandomness
from odradek.broker.startup.surroundings import Worker
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.workers.layout import SpreadRefusedError
from odradek.broker.workers.machine import locked_machine
from odradek.broker.workers.spread import Outcome, spread
from odradek.protocol.errors import ErrorCode
from tests.handlers.requests import batch, fetch, produce, values_in
from tests.wire import Wire

PARTITIONS = 4
MACHINE, OTHER = 1, 2


class Machines:
    """Machine 1, whose workers change, and machine 2 with one broker, on a store that stands for etcd."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = InMemoryStore()
        self.brokers: dict[int, Broker] = {}

    def properties(self, machine: int, workers: int) -> dict[str, str]:
        return {
            "node.id": str(machine),
            "log.dirs": str(self.path / str(machine)),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "num.workers": str(workers),
            "metadata.etcd.endpoints": "127.0.0.1:1",
            "replica.fetch.wait.max.ms": "50",
            "replica.fetch.backoff.ms": "50",
            "log.retention.ms": "-1",
        }

    async def start(self, machine: int, workers: int = 1) -> None:
        properties = self.properties(machine, workers)
        config = BrokerConfig.load(None, properties)
        for number in range(workers):
            own = BrokerConfig.load(None, properties | worker_properties(config, number))
            broker = Broker(own, store=self.store, worker=Worker(f"machine-{machine}", None))
            await broker.start()
            self.brokers[own.node_id] = broker

    async def stop(self, machine: int) -> None:
        for node_id in [each for each in self.brokers if each % 1000 == machine]:
            await self.brokers.pop(node_id).stop()

    async def spread(self, workers: int) -> Outcome:
        config = BrokerConfig.load(None, self.properties(MACHINE, workers))
        with locked_machine(config, OsFiles()) as machine:
            return await spread(config, machine, self.store, SeededRandomness(7))

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():  # noqa: ASYNC110 - it may depend on any broker
                await asyncio.sleep(0.01)

    async def until_in_sync(self) -> None:
        def in_sync() -> bool:
            images = [broker.services.metadata.image for broker in self.brokers.values()]
            return all(
                len(partition.isr) == 2 and partition.leader >= 0
                for image in images
                for partition in image.topics["t"].partitions
            )

        await self.until(in_sync)

    def replicas(self) -> list[list[int]]:
        image = next(iter(self.brokers.values())).services.metadata.image
        return [partition.replicas for partition in image.topics["t"].partitions]

    async def produce(self, value: bytes) -> None:
        """Produce to each partition, to its leader, with acks=all."""
        for index in range(PARTITIONS):
            while True:
                image = next(iter(self.brokers.values())).services.metadata.image
                leader = self.brokers[image.topics["t"].partitions[index].leader]
                async with Wire("127.0.0.1", leader.port) as wire:
                    row = await produce(wire, "t", batch(value), index, acks=-1)
                if row.error_code == ErrorCode.NONE:
                    break
                assert ErrorCode(row.error_code).retriable

    async def values(self, index: int) -> list[bytes | None]:
        image = next(iter(self.brokers.values())).services.metadata.image
        leader = self.brokers[image.topics["t"].partitions[index].leader]
        async with Wire("127.0.0.1", leader.port) as wire:
            return values_in(await fetch(wire, "t", 0, index))


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    """Both machines with one broker each, and a topic whose partitions both have."""
    made = Machines(tmp_path)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(made.store.close)
        stack.push_async_callback(made.stop, OTHER)
        stack.push_async_callback(made.stop, MACHINE)
        await made.start(MACHINE)
        await made.start(OTHER)
        assignments = {index: [MACHINE, OTHER] if index % 2 else [OTHER, MACHINE] for index in range(PARTITIONS)}
        await create_topic(made.brokers[MACHINE].services.metadata, "t", assignments=assignments)
        await made.until_in_sync()
        await made.produce(b"first")
        yield made


async def test_replicas_move_while_the_other_machine_serves(machines: Machines) -> None:
    await machines.stop(MACHINE)
    assert (await machines.spread(2)).moved == 2
    await machines.produce(b"second")
    await machines.start(MACHINE, 2)
    await machines.until_in_sync()
    assert machines.replicas() == [[2, 1], [1001, 2], [2, 1], [1001, 2]]

    await machines.stop(OTHER)
    await machines.until(
        lambda: all(each.leader != OTHER for each in machines.brokers[1].services.metadata.image.topics["t"].partitions)
    )

    for index in range(PARTITIONS):
        assert await machines.values(index) == [b"first", b"second"]
    await machines.start(OTHER)
    await machines.until_in_sync()
    await machines.stop(MACHINE)
    assert (await machines.spread(1)).moved == 2
    await machines.start(MACHINE)
    await machines.until_in_sync()
    assert [set(each) for each in machines.replicas()] == [{1, 2}] * PARTITIONS
    assert not list(machines.path.rglob("*-stray"))


async def test_machines_that_were_all_stopped_lead_again(machines: Machines) -> None:
    await machines.stop(OTHER)
    await machines.stop(MACHINE)
    assert (await machines.spread(3)).moved == 2
    await machines.start(MACHINE, 3)
    await machines.until(
        lambda: all(each.leader > 0 for each in machines.brokers[1].services.metadata.image.topics["t"].partitions)
    )
    for index in range(PARTITIONS):
        assert await machines.values(index) == [b"first"]
    await machines.start(OTHER)
    await machines.until_in_sync()


async def test_a_replica_that_was_assigned_meanwhile_has_no_directory_yet(machines: Machines) -> None:
    await machines.stop(MACHINE)
    metadata = machines.brokers[OTHER].services.metadata
    await create_topic(metadata, "later", assignments={0: [OTHER, MACHINE], 1: [OTHER, MACHINE]})

    assert (await machines.spread(2)).moved == 3

    await machines.start(MACHINE, 2)
    await machines.until(lambda: len(metadata.image.topics["later"].partitions[1].isr) == 2)
    assert metadata.image.topics["later"].partitions[1].replicas == [OTHER, 1001]


async def test_what_a_removed_worker_has_of_a_deleted_topic_is_deleted_by_the_first(machines: Machines) -> None:
    await machines.stop(MACHINE)
    await machines.spread(2)
    metadata = machines.brokers[OTHER].services.metadata
    await delete_topic(metadata, name="t")
    await create_topic(metadata, "t", assignments={0: [OTHER, MACHINE]})
    worker = machines.path / "1" / "worker.1"
    assert {each.name for each in worker.glob("t-*")} == {"t-1", "t-3"}
    shutil.copytree(worker / "t-1", worker / "unknown-1")
    (worker / "unknown-1" / "partition.metadata").unlink()

    await machines.spread(1)

    assert not worker.exists()
    kept = sorted(each.name.rpartition("-")[2] for each in (machines.path / "1").glob("*.*-*"))
    assert kept == ["delete", "delete", "stray"]
    await machines.start(MACHINE)
    assert not list((machines.path / "1").glob("t-[13].*"))


async def test_a_broker_of_another_machine_with_the_id_of_a_worker(machines: Machines) -> None:
    await machines.stop(MACHINE)
    directory = machines.path / "foreign"
    properties = machines.properties(1001, 1) | {"log.dirs": str(directory)}
    broker = Broker(BrokerConfig.load(None, properties), store=machines.store)
    await broker.start()
    with pytest.raises(SpreadRefusedError, match=r"worker 1 \(node id 1001\) is registered in the metadata store"):
        await machines.spread(2)
    await broker.stop()
    with pytest.raises(
        SpreadRefusedError, match=r"of worker 1 \(node id 1001\), which it had .* is in none of log.dirs"
    ):
        await machines.spread(2)

"""A machine whose number of workers changes: runs them in this process, and spreads their partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import worker_properties
from odradek.broker.metadata.image import MetadataImage, PartitionImage
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.randomness import SeededRandomness
from odradek.broker.startup.surroundings import Worker
from odradek.broker.storage.disk.files import Files, OsFiles
from odradek.broker.workers.machine import locked_machine
from odradek.broker.workers.spread import Outcome, spread
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.handlers.requests import fetch, values_in
from tests.wire import Wire

GROUP, TRANSACTION = 0, 1
"""The types of coordinators."""


class Running:
    """The workers of a machine, by node id."""

    def __init__(self, brokers: dict[int, Broker]) -> None:
        self.brokers = brokers

    @property
    def image(self) -> MetadataImage:
        return next(iter(self.brokers.values())).services.metadata.image

    def partition(self, topic: str, index: int) -> PartitionImage:
        return self.image.topics[topic].partitions[index]

    def wire(self, node_id: int) -> Wire:
        return Wire("127.0.0.1", self.brokers[node_id].port)

    def leader(self, topic: str, index: int = 0) -> Wire:
        return self.wire(self.partition(topic, index).leader)

    async def values(self, topic: str, index: int = 0, offset: int = 0) -> list[bytes | None]:
        async with self.leader(topic, index) as wire:
            return values_in(await fetch(wire, topic, offset, index))

    async def coordinator(self, key: str, kind: int) -> Wire:
        """Return a connection to the coordinator of a group or transactional id, not yet open."""
        async with self.wire(min(self.brokers)) as wire:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            [row] = (await wire.ask(request, 6)).coordinators
        return self.wire(row.node_id)


class Host:
    """A machine with one or several of `log.dirs`; its metadata are in SQLite, as a supervisor has them."""

    def __init__(self, *log_dirs: Path, **properties: str) -> None:
        self.log_dirs = log_dirs
        self._properties = {
            "node.id": "1",
            "log.dirs": ",".join(map(str, log_dirs)),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "4",
            "log.retention.ms": "-1",
            **{name.replace("_", "."): text for name, text in properties.items()},
        }

    def properties(self, workers: int) -> dict[str, str]:
        return {**self._properties, "num.workers": str(workers)}

    def config(self, workers: int) -> BrokerConfig:
        return BrokerConfig.load(None, self.properties(workers))

    @property
    def store_path(self) -> Path:
        return self.log_dirs[0] / FILE_NAME

    @asynccontextmanager
    async def running(self, workers: int) -> AsyncIterator[Running]:
        """Run as one broker, or as several that share the store, each in its place."""
        config = self.config(workers)
        async with AsyncExitStack() as stack:
            if workers == 1:
                yield Running({1: await stack.enter_async_context(Broker(config))})
                return
            store = await SqliteStore.open(self.store_path)
            stack.push_async_callback(store.close)
            brokers = {}
            for number in range(workers):
                own = BrokerConfig.load(None, self.properties(workers) | worker_properties(config, number))
                broker = Broker(own, store=store, worker=Worker("host", None))
                brokers[own.node_id] = await stack.enter_async_context(broker)
            running = Running(brokers)
            for broker in brokers.values():
                metadata = broker.services.metadata
                while brokers.keys() != metadata.image.brokers.keys() or _has_no_leader(metadata.image):
                    await metadata.wait_for_revision(metadata.image.revision + 1)
                await broker.services.partitions.settled()
            yield running

    async def spread(self, workers: int, files: Files | None = None) -> Outcome:
        config = self.config(workers)
        with locked_machine(config, files or OsFiles()) as machine:
            store = await SqliteStore.open(self.store_path)
            try:
                return await spread(config, machine, store, SeededRandomness(7))
            finally:
                await store.close()

    def partitions(self, worker: int) -> set[str]:
        """Return the names of the partitions' directories of a worker."""
        places = [each if worker == 0 else each / f"worker.{worker}" for each in self.log_dirs]
        return {each.name for place in places if place.exists() for each in place.iterdir() if _is_partition(each)}


def _is_partition(path: Path) -> bool:
    return path.is_dir() and "-" in path.name


def _has_no_leader(image: MetadataImage) -> bool:
    return any(partition.leader < 0 for topic in image.topics.values() for partition in topic.partitions)

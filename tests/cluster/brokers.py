"""Three broker processes and three members of etcd: to kill, pause and start again, and what a broker says of them."""

from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.schema import Message
from tests.peers import etcd, odradek
from tests.peers.server import Server
from tests.wire import Wire

T = TypeVar("T")

RACKS = ("a", "b", "c")
OFFSETS_PARTITIONS = 3
"""The partitions of `__consumer_offsets`, and of `__transaction_state`."""
GROUP, TRANSACTION = 0, 1
LIMIT = 120.0
"""Seconds until a condition must hold. All take a few seconds on a machine that is not busy."""

DOZE_SECONDS = 1.65
"""etcd grants a session of 3 s a lease of 2 s and renews it every 0.4 s: after this time it is no longer certain that
the broker is registered, but it is."""

_PAUSE = 0.05
_ANSWER = 20.0


@dataclass(frozen=True)
class PartitionView:
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.leader in self.isr and sorted(self.isr) == sorted(self.replicas)


@dataclass(frozen=True)
class View:
    """The cluster as one broker describes it to clients; `topics` has the partitions by index."""

    brokers: frozenset[int]
    topics: dict[str, list[PartitionView]]


class Brokers:
    """The processes by node id, 1 to 3. `start` and `heal` return when every replica is in sync."""

    def __init__(self, servers: dict[int, Server], members: etcd.Cluster) -> None:
        self.servers = servers
        self.etcd = members
        self._paused: set[int] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(server.bootstrap for server in self.servers.values())

    @property
    def running(self) -> list[int]:
        """The brokers that live and are not paused."""
        return [each for each, server in self.servers.items() if server.is_alive and each not in self._paused]

    def kill(self, *node_ids: int) -> None:
        """SIGKILL all of them, then wait for the end of each."""
        for node_id in node_ids:
            self.servers[node_id].process.kill()
        for node_id in node_ids:
            self.servers[node_id].process.wait()

    def pause(self, node_id: int) -> None:
        self.servers[node_id].pause()
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self.servers[node_id].resume()
        self._paused.discard(node_id)

    def doze(self, node_id: int) -> None:
        """Pause a broker for longer than its session is certain, and shorter than its session."""
        self.pause(node_id)
        threading.Event().wait(DOZE_SECONDS)
        self.resume(node_id)

    def heal(self) -> None:
        """Start and resume what does not run."""
        for node_id in tuple(self._paused):
            self.resume(node_id)
        for processes in (self.etcd.members, tuple(self.servers.values())):
            _start(processes)
        wait_until(lambda: all(self._is_whole(self.view(each)) for each in self.servers), self._describe)

    def view(self, of: int | None = None) -> View:
        """The view of this broker, or of the first one that runs. Raises OSError if it does not answer."""
        response = self._ask(MetadataRequest(topics=None), 12, of)
        topics = {
            topic.name: [
                PartitionView(each.leader_id, tuple(each.replica_nodes), tuple(each.isr_nodes))
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ]
            for topic in response.topics
        }
        return View(frozenset(each.node_id for each in response.brokers), topics)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The leader, as soon as there is one that runs."""
        return wait_until(lambda: self._running_leader(topic, partition), self._describe)

    def coordinator(self, key: str, kind: int = GROUP) -> int:
        """The coordinator of a group or a transactional id, as soon as there is one that runs."""
        return wait_until(lambda: self._running_coordinator(key, kind), self._describe)

    def controller(self) -> int:
        """The controller, as soon as there is one that runs."""
        return wait_until(self._running_controller, self._describe)

    def wait_until_led_by_others(self, node_ids: Sequence[int]) -> None:
        """Return when every partition with a replica on another broker than these is led by one of the others."""

        def is_led(partition: PartitionView) -> bool:
            return set(partition.replicas) <= set(node_ids) or partition.leader in set(self.running) - set(node_ids)

        wait_until(lambda: all(is_led(each) for each in _partitions(self.view())), self._describe)

    def _running_controller(self) -> int | None:
        return next((each for each in self.running if _is_controller(self.servers[each])), None)

    def _running_leader(self, topic: str, partition: int) -> int | None:
        partitions = self.view().topics.get(topic, [])
        leader = partitions[partition].leader if partition < len(partitions) else -1
        return leader if leader in self.running else None

    def _running_coordinator(self, key: str, kind: int) -> int | None:
        [found] = self._ask(FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4).coordinators
        return found.node_id if found.node_id in self.running else None

    def _is_whole(self, view: View) -> bool:
        return view.brokers == self.servers.keys() and all(each.is_whole for each in _partitions(view))

    def _ask(self, request: Message, version: int, of: int | None = None) -> Any:
        server = self.servers[of or self.running[0]]
        return ask(server.host, server.port, request, version)

    def _describe(self) -> str:
        try:
            return str(self.view())
        except (OSError, IndexError, EOFError) as error:
            return f"no view: {error!r}"


def wait_until(condition: Callable[[], T | None], describe: Callable[[], str] = str) -> T:
    """Return the condition's value as soon as it is true. A server that does not answer makes it false."""
    give_up_at = time.monotonic() + LIMIT
    while True:
        with suppress(OSError, EOFError):
            if value := condition():
                return value
        assert time.monotonic() < give_up_at, f"does not become true: {describe()}"
        threading.Event().wait(_PAUSE)


@contextmanager
def running(
    directory: Path, changed: Callable[[Server], Server] = lambda server: server, **properties: str
) -> Iterator[Brokers]:
    """Start three members of etcd and three brokers, each `changed` first; kill them at the end."""
    with etcd.running(3) as members:
        common = {
            "metadata.etcd.endpoints": ",".join(each.split("://")[-1] for each in members.endpoints),
            "broker.session.timeout.ms": "3000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
            "transaction.state.log.num.partitions": str(OFFSETS_PARTITIONS),
            **{name.replace("_", "."): text for name, text in properties.items()},
        }
        servers = {
            node_id: changed(
                odradek.prepare(directory / str(node_id), {**common, "node.id": str(node_id), "broker.rack": rack})
            )
            for node_id, rack in enumerate(RACKS, 1)
        }
        try:
            _start(tuple(servers.values()))
            yield Brokers(servers, members)
        finally:
            for server in servers.values():
                if server.is_alive:
                    server.kill()


def _start(servers: Sequence[Server]) -> None:
    """Start those that do not run, together, and return when they serve."""
    dead = [server for server in servers if not server.is_alive]
    for server in dead:
        server.start(wait=False)
    for server in dead:
        server.wait_until_ready(LIMIT)


def _partitions(view: View) -> list[PartitionView]:
    return [partition for partitions in view.topics.values() for partition in partitions]


def _is_controller(server: Server) -> bool:
    with urllib.request.urlopen(f"http://{server.host}:{server.metrics_port}/metrics", timeout=_ANSWER) as response:
        return b"\nkafka_controller_kafkacontroller_activecontrollercount 1" in response.read()


def ask(host: str, port: int, request: Message, version: int) -> Any:
    """Send a request on a connection of its own, and return the answer. Raises OSError, EOFError."""

    async def ask() -> Any:
        async with asyncio.timeout(_ANSWER), Wire(host, port) as wire:
            return await wire.ask(request, version)

    return asyncio.run(ask())

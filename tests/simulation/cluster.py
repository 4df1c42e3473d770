"""Three brokers, their machines, and the metadata store: what a nemesis can do to them.

| operation | the process | files | connections | then |
|---|---|---|---|---|
| `kill` | dies | stay, synced or not | are reset | `start` |
| `cut_power` | dies | lose what was not synced, in part | are silent | `start`, as a new boot |
| `pause` | stands still; its timers and messages wait | stay | stay | `resume` |
| `stop` | drains, closes its logs, leaves | stay | are closed | `start` |

Each start creates a `Broker` with everything that it uses of its machine in simulated form.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Batch, StoreError
from odradek.broker.randomness import SeededRandomness
from odradek.broker.startup.machine import Machine
from tests.simulation.client import PORT, Client
from tests.simulation.hosts import Host, HostClock
from tests.simulation.network import Network
from tests.simulation.store import RemoteStore, StoreServer
from tests.simulation.streams import SimulatedListener, SimulatedNetwork, reset_connections
from tests.simulation.threads import Disk, SimulatedThreads
from tests.simulation.world import World
from tests.storage.simulated_disk import Directory, SimulatedFiles

NODE_IDS = (1, 2, 3)
SESSION_MS = 3000
"""The time after which a group removes a silent member."""
STORE = "store"
CLIENTS = "clients"
_RESTART_SECONDS = 0.5
_MOST_CLEANUPS = 100

PROPERTIES = {
    "log.dirs": "/data",
    "broker.session.timeout.ms": "3000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": f"{SESSION_MS}",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.segment.bytes": "4096",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "auto.create.topics.enable": "false",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.backoff.ms": "200",
    "replica.fetch.max.bytes": "8192",
    "replica.socket.timeout.ms": "2000",
    "replica.high.watermark.checkpoint.interval.ms": "1500",
    "log.flush.offset.checkpoint.interval.ms": "2500",
    "log.index.size.max.bytes": "1024",
    "log.index.interval.bytes": "512",
    "log.segment.bytes": "4096",
    "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
    "log.segment.delete.delay.ms": "500",
}


class Node:
    """One broker and its machine. `root` is the content of its disk."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.node_id = node_id
        self.host = Host(cluster.world, f"node-{node_id}")
        self.disk = Disk(self.host)
        self.root = Directory()
        self.files = SimulatedFiles(self.root)
        self.broker: Broker | None = None
        self.brokers: list[Broker] = []  # all that ever ran
        self.is_paused = False
        self.has_started = False
        self.is_stopping = False
        self.starts_again = False  # as soon as it has stopped
        self.tasks: list[asyncio.Task[None]] = []

    @property
    def boot_id(self) -> str:
        """The id of the present run of the machine's operating system."""
        return f"boot-{self.node_id}-{self.host.boots}"


class Cluster:
    """The cluster of one run. `on_change` receives each change of the metadata at the moment it is applied."""

    def __init__(self, world: World, on_change: Callable[[Batch], None], properties: Mapping[str, str]) -> None:
        """`properties` are those of all brokers beside `PROPERTIES`."""
        self.world = world
        self._properties = {**PROPERTIES, **properties}
        self.network = Network(world)
        self.nodes = {node_id: Node(self, node_id) for node_id in NODE_IDS}
        self.store_host = Host(world, STORE)
        self.client_host = Host(world, CLIENTS)
        self.hosts = {host.name: host for host in (*(node.host for node in self.nodes.values()), self.store_host)}
        loop = self.store_host.begin_process()
        self.metadata = InMemoryStore()
        self.store = StoreServer(self.store_host, loop, self.metadata)
        self._following = loop.create_task(self.store.follow(on_change))
        self.clients = self.client_host.begin_process()
        self.hosts[CLIENTS] = self.client_host

    # --------------------------------------------------------------------------------------------------------- brokers

    def start(self, node_id: int) -> None:
        """Start a broker, unless its process runs; the machine boots if it is off."""
        node = self.nodes[node_id]
        host = node.host
        if host.loop is not None:
            return
        if not host.is_on:
            host.is_on = True
            host.boots += 1
        self.world.note(f"start {node_id}")
        loop = host.begin_process()
        node.files = SimulatedFiles(node.root)
        node.is_paused = node.has_started = node.is_stopping = node.starts_again = False
        node.tasks.append(loop.create_task(self._run(node)))

    async def _run(self, node: Node) -> None:
        """The main function of the process: start, and end when the broker fails; a supervisor starts it again."""
        loop = node.host.loop
        assert loop is not None
        broker = node.broker = self._new_broker(node)
        node.brokers.append(broker)
        try:
            await broker.start()
        except StoreError as error:
            self.world.note(f"start of {node.node_id} fails: {error}")
        else:
            node.has_started = True
            self.world.note(f"started {node.node_id}")
            await broker.failed.wait()
            self.world.note(f"broker {node.node_id} failed")
        self.network.at(self.world.now, self._ended, node, loop)

    def _ended(self, node: Node, loop: object) -> None:
        if node.host.loop is loop:
            self.kill(node.node_id)
            self.network.at(self.world.now + _RESTART_SECONDS, self.start, node.node_id)

    def _new_broker(self, node: Node) -> Broker:
        host = node.host
        loop = host.loop
        assert loop is not None
        clock = HostClock(host, loop)
        properties = {
            **self._properties,
            "node.id": str(node.node_id),
            "listeners": f"PLAINTEXT://{host.name}:{PORT}",
        }
        boot_id = node.boot_id
        return Broker(
            BrokerConfig.load(None, properties),
            clock=clock,
            randomness=SeededRandomness(self.world.draw.getrandbits(64)),
            store=RemoteStore(self.store, self.network, host, clock),
            machine=Machine(
                new_files=lambda: node.files,
                new_threads=lambda _: SimulatedThreads(loop, node.disk),
                new_listener=partial(SimulatedListener, self.network, host),
                network=SimulatedNetwork(self.network, self.hosts, host),
                boot_id=lambda: boot_id,
            ),
        )

    def kill(self, node_id: int) -> None:
        """Kill the process; the page cache survives."""
        node = self.nodes[node_id]
        loop = node.host.loop
        if loop is not None:
            self.world.note(f"kill {node_id}")
            node.host.end_process()
            node.broker = None
            reset_connections(loop)

    def cut_power(self, node_id: int) -> None:
        """Turn the machine off: what was not synced is lost in part."""
        node = self.nodes[node_id]
        self.world.note(f"cut power {node_id}")
        node.host.end_process()
        node.broker = None
        node.host.is_on = False
        node.root = node.root.after_power_cut(random.Random(self.world.draw.getrandbits(64)))

    def stop(self, node_id: int) -> None:
        """Ask the process to stop; it does so in its own time."""
        node = self.nodes[node_id]
        loop, broker = node.host.loop, node.broker
        if loop is not None and broker is not None and node.has_started:
            self.world.note(f"stop {node_id}")
            node.tasks.append(loop.create_task(self._stop(node, broker, loop)))

    async def _stop(self, node: Node, broker: Broker, loop: object) -> None:
        if node.is_stopping:
            return
        node.is_stopping = True
        await broker.stop()
        self.world.note(f"stopped {node.node_id}")
        self.network.at(self.world.now, self._stopped, node, loop)

    def _stopped(self, node: Node, loop: object) -> None:
        if node.host.loop is loop:
            self.kill(node.node_id)
            if node.starts_again:
                self.start(node.node_id)

    def start_when_stopped(self, node_id: int) -> None:
        """Start a broker now, or when it has stopped."""
        node = self.nodes[node_id]
        node.starts_again = True
        self.start(node_id)

    def pause(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.host.loop is not None:
            self.world.note(f"pause {node_id}")
            node.is_paused = True
            node.host.loop.pause()

    def resume(self, node_id: int) -> None:
        node = self.nodes[node_id]
        if node.is_paused and node.host.loop is not None:
            self.world.note(f"resume {node_id}")
            node.is_paused = False
            node.host.loop.resume()

    def serves_undisturbed(self, node_id: int) -> bool:
        """Return whether a broker serves, and nothing disturbs the store, the ways to it, and the broker's disk."""
        node, store, network = self.nodes[node_id], self.store_host.loop, self.network
        if not node.has_started or node.is_stopping or node.is_paused or node.host.loop is None or node.disk.slowness:
            return False
        ways = {way for each in self.nodes for way in ((f"node-{each}", STORE), (STORE, f"node-{each}"))}
        disturbed = [*filter(network.is_cut, ways), *ways & network.slowness.keys(), *ways & network.lost_share.keys()]
        return store is not None and not store.is_paused and not disturbed

    # --------------------------------------------------------------------------------------------------------- clients

    def new_client(self, name: str) -> Client:
        network = SimulatedNetwork(self.network, self.hosts, self.client_host)
        return Client(name, self.client_host, network, list(NODE_IDS))

    def end(self) -> None:
        """End all processes, and close their coroutines, which would complain if they were collected in the middle."""
        for host in self.hosts.values():
            host.end_process()
            for loop in host.loops:
                for task in asyncio.all_tasks(loop):
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001
                    _close(task)


def _close(task: asyncio.Task[Any]) -> None:
    """Close the coroutine of a task that will not run any more, however often its cleanup waits for something."""
    for _ in range(_MOST_CLEANUPS):
        try:
            task.get_coro().close()  # type: ignore[union-attr]
        except Exception:  # noqa: BLE001 - it waits again, or what it cleans up is gone with its process
            continue
        return

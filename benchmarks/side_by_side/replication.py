"""Three brokers on each side: producing with acks=all to partitions with three replicas.

All partitions are led by the first broker, and the other two follow it. The processor time is that of the three brokers
together, with etcd on our side; Apache Kafka has its controllers in the same processes. On a machine of few cores the
brokers of a side compete for them, so the processor time says more than the rate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from confluent_kafka.admin import NewTopic

from benchmarks.side_by_side import load, usage
from benchmarks.side_by_side.contest import KAFKA_OPTIONS, PROPERTIES, Contest, Side, run_from
from benchmarks.side_by_side.raw import loaded
from benchmarks.side_by_side.results import BASELINE, ODRADEK, Row, Sample
from tests.peers import apache, etcd, odradek
from tests.peers.server import Server, free_port

NODES = (1, 2, 3)
_PROPERTIES = {
    **PROPERTIES,
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
}
_JOIN_SECONDS = 60


class Load(NamedTuple):
    """A load of Produce: connections, requests in flight on each, records and bytes of a value in a batch."""

    work: str
    connections: int
    in_flight: int
    records: int
    value_bytes: int
    is_quick: bool = True


LOADS = (
    Load("replicated produce 100 B, 1×1", 1, 1, 1, 100),
    Load("replicated produce 100 B, 8×8", 8, 8, 1, 100, is_quick=False),
    Load("replicated produce 16 KiB batches, 4×4", 4, 4, 16, 1000),
    Load("replicated produce 256 KiB batches, 4×1", 4, 1, 256, 1000, is_quick=False),
)


class ClusterSide(Side):
    """Three brokers, the first of which leads everything; `members` is the etcd of ours."""

    def __init__(self, name: str, servers: list[Server], members: etcd.Cluster | None = None) -> None:
        super().__init__(name, servers[0])
        self._servers = servers
        self._members = members

    def start(self) -> None:
        if self._members is not None:
            self._members.start()
        for server in self._servers:
            server.start(wait=False)
        for server in self._servers:
            server.wait_until_ready()
        self._await_all()

    def stop(self) -> None:
        for server in self._servers:
            server.stop()
        if self._members is not None:
            self._members.kill()

    def kill(self) -> None:
        for server in self._servers:
            if hasattr(server, "process") and server.process.poll() is None:
                server.kill()
        if self._members is not None:
            self._members.kill()

    def cpu_seconds(self) -> float:
        members = [] if self._members is None else self._members.members
        return sum(usage.cpu_seconds(each.process.pid) for each in (*self._servers, *members))

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> None:
        """Create a topic whose partitions are all led by the first broker."""
        assignment = [list(NODES)] * partitions
        self._create(NewTopic(name, partitions, replica_assignment=assignment, config=dict(configs)))

    def _await_all(self) -> None:
        give_up_at = time.monotonic() + _JOIN_SECONDS
        while len(self.admin().list_topics(timeout=_JOIN_SECONDS).brokers) < len(NODES):
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"{self.name}: the brokers do not find each other")
            time.sleep(0.1)


class ClusterContest(Contest):
    """Two clusters in place of two brokers."""

    def _prepared(self, directory: Path) -> tuple[Side, Side]:
        if self.tree is None:
            baseline = _apache(directory / BASELINE)
        else:
            baseline = _odradek(BASELINE, directory / BASELINE, partial(run_from, self.tree))
        return baseline, _odradek(ODRADEK, directory / ODRADEK)


def _odradek(name: str, directory: Path, change: Callable[[Server], None] = lambda _: None) -> ClusterSide:
    directory.mkdir(parents=True)
    members = etcd.prepare(directory, 1)
    endpoints = ",".join(each.split("://")[-1] for each in members.endpoints)
    servers = []
    for node_id in NODES:
        own = {"node.id": str(node_id), "metadata.etcd.endpoints": endpoints}
        server = odradek.prepare(directory / str(node_id), _PROPERTIES | own)
        change(server)
        servers.append(server)
    return ClusterSide(name, servers, members)


def _apache(directory: Path) -> ClusterSide:
    ports = {node_id: (free_port(), free_port()) for node_id in NODES}
    voters = ",".join(f"{node_id}@127.0.0.1:{controller}" for node_id, (_, controller) in ports.items())
    servers = []
    for node_id, (port, controller) in ports.items():
        own = {
            "node.id": str(node_id),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        }
        servers.append(apache.prepare(directory / str(node_id), _PROPERTIES | own, port=port, options=KAFKA_OPTIONS))
    return ClusterSide(BASELINE, servers)


def _produces(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Measure with clusters of their own, beside which the brokers of `contest` are idle."""
    with (
        TemporaryDirectory(prefix="side-by-side-") as directory,
        ClusterContest(Path(directory), tree=contest.tree, rounds=contest.rounds, seconds=contest.seconds) as clusters,
    ):
        for wanted in LOADS:
            if wanted.is_quick or not quick:
                yield _produce(clusters, wanted)


def _produce(contest: Contest, wanted: Load) -> Row:
    topic = contest.new_topic(wanted.connections)
    batch = load.batch(wanted.records, wanted.value_bytes)
    frames = [load.produce_frame(topic, [index], batch, acks=-1) for index in range(wanted.connections)]

    def measure(side: Side) -> Sample:
        return loaded(contest, side, frames, wanted.connections, wanted.in_flight, len(batch))

    row = contest.row("replication", wanted.work, measure)
    contest.delete_topic(topic)
    return row


PARTS = {"produce": _produces}

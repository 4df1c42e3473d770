"""Three broker processes and one etcd."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.peers import etcd, odradek
from tests.peers.server import Server

RACKS = ("a", "b", "c")


class Brokers:
    """The processes by node id, 1 to 3."""

    def __init__(self, servers: dict[int, Server], members: etcd.Cluster) -> None:
        self.servers = servers
        self.etcd = members

    @property
    def bootstrap(self) -> str:
        return ",".join(server.bootstrap for server in self.servers.values())


@contextmanager
def running(directory: Path, **properties: str) -> Iterator[Brokers]:
    """Start an etcd and three brokers; kill them at the end."""
    with etcd.running(1) as members:
        common = {
            "metadata.etcd.endpoints": ",".join(each.split("://")[-1] for each in members.endpoints),
            "broker.session.timeout.ms": "3000",
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "3",
            **{name.replace("_", "."): text for name, text in properties.items()},
        }
        servers = {
            node_id: odradek.prepare(
                directory / str(node_id), {**common, "node.id": str(node_id), "broker.rack": RACKS[node_id - 1]}
            )
            for node_id in (1, 2, 3)
        }
        try:
            for server in servers.values():
                server.start(wait=False)
            for server in servers.values():
                server.wait_until_ready()
            yield Brokers(servers, members)
        finally:
            for server in servers.values():
                if hasattr(server, "process"):
                    server.kill()

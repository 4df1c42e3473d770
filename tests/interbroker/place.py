"""Broker 1 of three in memory, whose connections are tested."""

from __future__ import annotations

import msgspec

from odradek.broker.interbroker.connections import BrokerConnections
from odradek.broker.metadata.image import BrokerImage, MetadataImage
from odradek.broker.metadata.values import RUNNING, Listener
from tests.client.scripted_network import ScriptedNetwork


class Place:
    """Broker 1 of three, with connections to the others; `image` may be replaced."""

    def __init__(self) -> None:
        self.network = ScriptedNetwork(3)
        brokers = {
            node_id: BrokerImage(
                node_id,
                node_id,
                [Listener("OTHER", "PLAINTEXT", "nowhere", 1), Listener("REPLICATION", "PLAINTEXT", *broker.address)],
                None,
                RUNNING,
                "",
                node_id,
            )
            for node_id, broker in self.network.brokers.items()
        }
        self.image = MetadataImage(brokers=brokers)
        self.connections = BrokerConnections(
            1, "REPLICATION", lambda: self.image, socket_timeout_ms=30_000, network=self.network
        )

    def move(self, node_id: int, to: int) -> None:
        """Register a broker at the address of another one."""
        moved = msgspec.structs.replace(self.image.brokers[node_id], listeners=self.image.brokers[to].listeners)
        self.image = msgspec.structs.replace(self.image, brokers={**self.image.brokers, node_id: moved})

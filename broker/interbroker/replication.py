"""Replication between this broker and the others: its fetchers, and its changes of in-sync sets.

```
image ─► partition led elsewhere ─► fetchers ─► connection to the leader ─► log of the partition
      └► partition led here ◄─ fetches of followers ─► may join, lags ─► ISR change ─► metadata store
```
"""

from __future__ import annotations

from itertools import count

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.interbroker.connections import BrokerConnections
from odradek.broker.interbroker.leader_connection import TcpLeaderConnection
from odradek.broker.metadata.image import BrokerImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.fencing import Fencing
from odradek.broker.replication.follower.fetchers import Fetchers
from odradek.broker.replication.follower.leader_connection import LeaderConnection
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.broker.replication.isr_changes import IsrChanges
from odradek.broker.replication.lost_replicas import LostReplicas
from odradek.broker.replication.partitions import Partitions
from odradek.broker.tasks import BackgroundTasks
from odradek.client.network.transport import Network
from odradek.client.security.settings import SecuritySettings


class Replication:
    """Follows the leaders of `partitions`, and keeps the in-sync sets of those led here; begins when it is made."""

    def __init__(
        self,
        metadata: Metadata,
        partitions: Partitions,
        *,
        clock: Clock,
        tasks: BackgroundTasks,
        metrics: Metrics,
        network: Network | None = None,
        security: SecuritySettings | None = None,
    ) -> None:
        """`security`: TLS and SASL of the connections to `inter.broker.listener.name`; None for plain text."""
        config = metadata.config
        self._metadata = metadata
        self.connections = BrokerConnections(
            config.node_id,
            config.inter_broker_listener,
            lambda: metadata.image,
            socket_timeout_ms=config.replica_socket_timeout_ms,
            host=metadata.host,
            network=network,
            security=security,
        )
        self._numbers = count()
        self._changes = IsrChanges(
            metadata,
            metadata.keys,
            brokers=self._registered,
            tasks=tasks,
            metrics=metrics,
        )
        self.fetchers = Fetchers(
            lambda: _settings(metadata.config),
            self._connect,
            node_id=config.node_id,
            broker_epoch=lambda: metadata.broker_epoch,
            clock=clock,
            tasks=tasks,
            metrics=metrics,
        )
        self._partitions = partitions
        partitions.fencing = Fencing(
            clock,
            metadata.lease_deadline,
            mode=config.fencing_mode,
            replica_fetch_wait_max_ms=config.replica_fetch_wait_max_ms,
        )
        LostReplicas(metadata, partitions, tasks)
        partitions.on_may_join = self._changes.expand
        partitions.on_leadership = self.fetchers.update
        partitions.on_removal = self.fetchers.remove
        tasks.every("ISR shrink", max(config.replica_lag_time_max_ms // 2, 1), self._shrink)

    async def close(self) -> None:
        """Close the connections; the owner of the tasks has ended the fetchers."""
        await self.connections.close()

    def _registered(self, node_id: int) -> BrokerImage | None:
        return self._metadata.image.registered.get(node_id)

    def _connect(self, leader: int) -> LeaderConnection:
        return TcpLeaderConnection(self.connections, leader, f"fetcher-{next(self._numbers)}")

    async def _shrink(self) -> None:
        self._changes.shrink(self._partitions)


def _settings(config: BrokerConfig) -> FollowerSettings:
    return FollowerSettings(
        num_replica_fetchers=config.num_replica_fetchers,
        replica_fetch_backoff_ms=config.replica_fetch_backoff_ms,
        replica_fetch_max_bytes=config.replica_fetch_max_bytes,
        replica_fetch_min_bytes=config.replica_fetch_min_bytes,
        replica_fetch_response_max_bytes=config.replica_fetch_response_max_bytes,
        replica_fetch_wait_max_ms=config.replica_fetch_wait_max_ms,
    )

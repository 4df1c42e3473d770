"""The fetchers of a broker: num.replica.fetchers loops for each leader that it follows.

A partition always uses the same one of a leader's loops. A loop without partitions ends, and its connection with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.follower.fetch_requests import PartitionKey
from odradek.broker.replication.follower.fetcher import Fetcher
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.follower.leader_connection import LeaderConnection
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.broker.replication.partition import NO_LEADER, Partition
from odradek.broker.tasks import BackgroundTasks

FetcherKey = tuple[int, int]
"""(node id of the leader, number of the loop)"""


class Lag(NamedTuple):
    """The number of committed records that a replica lacks, and the loop that fetches them."""

    partition: Partition
    leader: int
    number: int
    records: int


class Fetchers:
    """The registry. `connect` makes the connection of one loop to a leader; `update` follows each new image.

    `settings` returns the present properties. A change counts for partitions whose leader or epoch changes later.
    """

    def __init__(
        self,
        settings: Callable[[], FollowerSettings],
        connect: Callable[[int], LeaderConnection],
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        clock: Clock,
        tasks: BackgroundTasks,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._tasks = tasks
        self._metrics = metrics
        self._fetchers: dict[FetcherKey, tuple[Fetcher, asyncio.Task[None]]] = {}
        self._places: dict[PartitionKey, FetcherKey] = {}
        self._stopped_before = 0

    @property
    def stopped_replicas(self) -> int:
        """The number of replicas that were stopped because they would have lost committed records."""
        return self._stopped_before + sum([fetcher.stopped_replicas for fetcher, _ in self._fetchers.values()])

    @property
    def max_lag(self) -> int:
        """The largest number of committed records that a followed replica lacks."""
        return max(
            [each.lag for fetcher, _ in self._fetchers.values() for each in fetcher.replicas.values()], default=0
        )

    @property
    def failed_partitions(self) -> int:
        """The number of replicas that are stopped now."""
        return sum([each.is_stopped for fetcher, _ in self._fetchers.values() for each in fetcher.replicas.values()])

    @property
    def dead_loops(self) -> int:
        """The number of loops that have ended although they have partitions."""
        return sum([task.done() for _, task in self._fetchers.values()])

    def lags(self) -> Iterator[Lag]:
        """Yield the lag of each followed replica, as of its last response."""
        for (leader, number), (fetcher, _) in self._fetchers.items():
            for replica in fetcher.replicas.values():
                yield Lag(replica.partition, leader, number, replica.lag)

    def update(self, partition: Partition) -> None:
        """Follow the partition's leader from now on, or nobody: call it when its leader or epoch has changed."""
        self.remove(partition)
        if partition.leader in (NO_LEADER, self._node_id) or partition.offline:
            return
        settings = self._settings()
        number = (int.from_bytes(partition.topic_id[-4:]) + partition.index) % settings.num_replica_fetchers
        place = (partition.leader, number)
        key = (partition.topic_id, partition.index)
        replica = FollowedReplica(partition, settings.replica_fetch_max_bytes)
        self._places[key] = place
        self._fetcher(place).add(key, replica)

    def remove(self, partition: Partition) -> None:
        """Follow nobody: the replica is about to be removed, to lead, or to follow another leader."""
        key = (partition.topic_id, partition.index)
        place = self._places.pop(key, None)
        if place is None:
            return
        fetcher, task = self._fetchers[place]
        fetcher.remove(key)
        if not fetcher.replicas:
            task.cancel()
            self._stopped_before += fetcher.stopped_replicas
            del self._fetchers[place]
            self._metrics.remove_fetcher(*place)

    def _fetcher(self, place: FetcherKey) -> Fetcher:
        if place not in self._fetchers:
            leader, number = place
            fetcher = Fetcher(
                self._connect(leader),
                self._settings(),
                node_id=self._node_id,
                broker_epoch=self._broker_epoch,
                clock=self._clock,
                tasks=self._tasks,
                metrics=self._metrics,
                counts=self._metrics.fetcher(leader, number),
            )
            task = self._tasks.start(f"fetcher {number} from {leader}", fetcher.run())
            self._fetchers[place] = (fetcher, task)
        return self._fetchers[place][0]

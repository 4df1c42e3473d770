"""One loop that fetches from one leader: all partitions in one request, the next one when all rows are handled.

A partition that cannot be fetched now pauses for replica.fetch.backoff.ms, and leaves the session meanwhile, so that
its error does not end the leader's wait for records. An unreachable leader pauses the whole loop as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import FetcherMetrics, Metrics
from odradek.broker.replication.follower.fetch_requests import FetchRequests, PartitionKey
from odradek.broker.replication.follower.followed_replica import FollowedReplica
from odradek.broker.replication.follower.leader_connection import LeaderConnection
from odradek.broker.replication.follower.settings import FollowerSettings
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchPartition, FetchResponse, PartitionData

_LOG = StructuredLogger(__name__)


class Fetcher:
    """The loop of one connection; `run` it in a task. `stopped_replicas` counts refused truncations.

    `broker_epoch` returns this broker's epoch in its present registration.
    """

    def __init__(
        self,
        connection: LeaderConnection,
        settings: FollowerSettings,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        clock: Clock,
        tasks: BackgroundTasks,
        metrics: Metrics,
        counts: FetcherMetrics,
    ) -> None:
        self.replicas: dict[PartitionKey, FollowedReplica] = {}
        self.stopped_replicas = 0
        self._connection = connection
        self._backoff = settings.replica_fetch_backoff_ms / 1000
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._tasks = tasks
        self._metrics = metrics
        self._counts = counts
        self._requests = FetchRequests(node_id, settings)
        self._changed = asyncio.Event()

    def add(self, key: PartitionKey, replica: FollowedReplica) -> None:
        """Fetch a partition from the next request on, in place of its replica of an earlier epoch."""
        self.replicas[key] = replica
        self._tasks.start("replica preparation", self._prepare(replica))

    def remove(self, key: PartitionKey) -> None:
        """Fetch a partition no more; a response that is on its way is discarded."""
        self.replicas.pop(key, None)

    async def run(self) -> None:
        """Fetch until the task is cancelled."""
        try:
            while True:
                now = self._clock.monotonic()
                fetched = {key: replica for key, replica in self.replicas.items() if self._is_due(replica, now)}
                if fetched:
                    await self._fetch(fetched)
                else:
                    await self._wait(now)
        finally:
            self._connection.close()

    async def _fetch(self, fetched: dict[PartitionKey, FollowedReplica]) -> None:
        wanted = {key: replica.wanted() for key, replica in fetched.items()}
        self._counts.requests += 1
        try:
            response = await self._connection.fetch(self._requests.build(wanted, self._broker_epoch()))
        except (OSError, TimeoutError) as error:
            _LOG.debug("leader not reached", error=str(error))
            self._requests.reset()
            await asyncio.sleep(self._backoff)
            return
        if self._requests.answered(response):
            await self._handle(response, fetched, wanted)
        elif response.error_code not in _SESSION_ERRORS:
            await asyncio.sleep(self._backoff)

    async def _prepare(self, replica: FollowedReplica) -> None:
        """Prepare a replica beside the fetches of others: it may have to wait for a recovery."""
        while replica.is_current and not replica.is_prepared:
            try:
                await replica.prepare()
            except KafkaError as error:
                self._failed(replica, error)
                await asyncio.sleep(self._backoff)
        self._changed.set()

    def _is_due(self, replica: FollowedReplica, now: float) -> bool:
        return replica.is_prepared and not replica.is_stopped and replica.is_current and replica.retry_at <= now

    async def _wait(self, now: float) -> None:
        """Wait for a new partition, or for the end of the next pause."""
        self._changed.clear()
        pauses = [
            replica.retry_at - now
            for replica in self.replicas.values()
            if replica.is_current and replica.is_prepared and not replica.is_stopped
        ]
        try:
            async with asyncio.timeout(max(0.0, min(pauses)) if pauses else None):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _handle(
        self,
        response: FetchResponse,
        fetched: Mapping[PartitionKey, FollowedReplica],
        wanted: Mapping[PartitionKey, FetchPartition],
    ) -> None:
        """Handle all rows: appends one after the other, truncations side by side, because each waits for the disk."""
        truncating = []
        for topic in response.responses:
            for row in topic.partitions:
                key = (topic.topic_id, row.partition_index)
                replica = fetched.get(key)
                if replica is None or self.replicas.get(key) is not replica:
                    continue
                if row.error_code or row.diverging_epoch.epoch >= 0:
                    truncating.append((replica, wanted[key], row))
                else:
                    await self._handle_row(replica, wanted[key], row)
        await asyncio.gather(*[self._handle_row(*each) for each in truncating])

    async def _handle_row(self, replica: FollowedReplica, wanted: FetchPartition, row: PartitionData) -> None:
        try:
            count = await replica.handle(wanted, row)
            self._metrics.replication_bytes_in += count
        except Exception as error:  # noqa: BLE001 - one partition must not hold up the others
            self._failed(replica, error)
            if not replica.is_prepared:
                self._tasks.start("replica preparation", self._prepare(replica))

    def _failed(self, replica: FollowedReplica, error: Exception) -> None:
        replica.retry_at = self._clock.monotonic() + self._backoff
        if not isinstance(error, KafkaError):
            _LOG.exception("partition not replicated", error, partition=str(replica.partition))
        elif replica.is_stopped:
            self.stopped_replicas += 1
            _LOG.error("replica stopped", partition=str(replica.partition), error=str(error))
        elif error.code not in _EXPECTED:
            _LOG.warning("partition not replicated", partition=str(replica.partition), error=str(error))


_SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
# Errors of a leader or follower whose image is the older one.
_EXPECTED = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)

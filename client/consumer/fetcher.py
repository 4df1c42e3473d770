"""The fetcher: fetches ahead of the user, one request at a time to each broker that leads assigned partitions.

```
            +--> no partition is fetchable: wait
            +--> a new leader: validate the positions (`position_validation`)
choosing ---+--> the buffer of some partition is full: wait a little, so that one request can have all
   ^        +--> Fetch, which waits at the broker for records, at most fetch_max_wait_ms
   |                |
   +----------------+  records go into the buffers of their partitions, errors are handled
```
Bounds: the buffer of a partition holds two fetches (`subscription_state.MAX_BUFFERED`) of `max_partition_fetch_bytes`
each (more only if a single batch is larger); a partition with a full buffer is left out of requests. A request that
waits at the broker delays the next one. So a request without a full partition waits for a short time only, and one
whose partitions were all sought elsewhere is abandoned by closing its connection.

| error of a partition | action |
|---|---|
| OFFSET_OUT_OF_RANGE | apply `auto_offset_reset`; with "none" the next poll raises the error |
| one of stale metadata (`cluster_image.STALE_METADATA`) | refresh the metadata, retry after a backoff |
| another retriable one | retry after a backoff |
| any other | the next poll raises the error, then retry |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from odradek.client.config import Address, ConsumerConfig
from odradek.client.consumer.completed_fetch import CompletedFetch
from odradek.client.consumer.fetch_positions import FetchPositions
from odradek.client.consumer.fetch_request import InFlightFetch, RequestedPartition
from odradek.client.consumer.fetch_session import FetchSession
from odradek.client.consumer.position_validation import PositionValidator
from odradek.client.consumer.subscription_state import PartitionState, SubscriptionState
from odradek.client.errors import BrokerError, ClientError, ClosedError, CorruptRecordsError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster
from odradek.client.network.cluster_image import STALE_METADATA
from odradek.client.network.connection import Connection
from odradek.client.network.connections import Purpose
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchResponse, PartitionData

_LOG = logging.getLogger(__name__)

_TRIED = "fetch"
_SHORT_WAIT_MS = 50
"""How long to wait for a full buffer, and how long a request without it may wait at the broker. A user that
takes longer to read a buffer is slower than the broker anyway; a faster user waits this long once."""


class Fetcher:
    """Fills the buffers of one consumer's partitions, from `start` to `close`.

    `arrived` is set when there may be records or an error for the user.
    """

    def __init__(
        self, config: ConsumerConfig, cluster: Cluster, subscription: SubscriptionState, positions: FetchPositions
    ) -> None:
        self.arrived = asyncio.Event()
        self._config = config
        self._cluster = cluster
        self._subscription = subscription
        self._positions = positions
        positions.on_change = self.wakeup
        self._validator = PositionValidator(config, cluster)
        self._loop = asyncio.get_running_loop()
        self._brokers: dict[int, asyncio.Task[None]] = {}
        self._wakeups: dict[int, asyncio.Event] = {}
        self._in_flight: dict[int, tuple[Connection, InFlightFetch]] = {}
        self._is_running = False
        cluster.on_change.append(self.wakeup)

    def start(self) -> None:
        """Start to fetch. Does nothing if it is started already."""
        if not self._is_running:
            self._is_running = True
            self.wakeup()

    async def close(self) -> None:
        """Stop fetching, and cancel all tasks, before the first await."""
        self._is_running = False
        self.arrived.set()  # who waits for records sees that the consumer is closed
        for task in self._brokers.values():
            task.cancel()
        await self._positions.close()
        await asyncio.gather(*self._brokers.values(), return_exceptions=True)

    def wakeup(self) -> None:
        """Continue after a change of the assignment, positions, metadata or errors."""
        if not self._is_running:
            return
        self._positions.initialize_missing()
        for partition, state in self._subscription.states.items():
            if state.error is not None:
                self.arrived.set()
            if state.fetch_offset is None:
                continue
            leader = self._cluster.leader(*partition)
            if leader is None:
                self._cluster.request_refresh()
            elif leader not in self._brokers:
                self._wakeups[leader] = asyncio.Event()
                self._brokers[leader] = asyncio.create_task(self._fetch_from(leader))
        for wakeup_event in self._wakeups.values():
            wakeup_event.set()
        for connection, fetch in list(self._in_flight.values()):
            if fetch.is_obsolete():
                connection.close()

    def buffer_consumed(self, state: PartitionState) -> None:
        """Continue after the user has read a buffered fetch of this partition."""
        leader = self._cluster.leader(*state.partition)
        if leader in self._wakeups:
            self._wakeups[leader].set()

    async def _fetch_from(self, node_id: int) -> None:
        """Fetch from one broker until cancelled."""
        config = self._config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        session = FetchSession()
        while True:
            states, is_complete = await self._fetchable_partitions(node_id)
            max_wait_ms = config.fetch_max_wait_ms if is_complete else min(config.fetch_max_wait_ms, _SHORT_WAIT_MS)
            try:
                connection = await self._cluster.connection(node_id, Purpose.FETCH)
                states = [state for state in states if self._is_led_by(node_id, state)]
                if not states:
                    continue  # unassigned, sought or moved to another leader while it connected
                fetch = InFlightFetch(config, self._cluster.image, connection, session, states, max_wait_ms)
                self._in_flight[node_id] = connection, fetch
                try:
                    response = await connection.send(fetch.message, FetchResponse, version=fetch.version)
                except ClientError:
                    session.handle_error()
                    raise
                finally:
                    del self._in_flight[node_id]
                session.handle_response(response)
                if response.error_code:
                    raise broker_error(response.error_code, _TRIED, broker=connection.name)
            except ClosedError:
                continue  # the request was abandoned
            except ClientError as error:
                _LOG.info("%s", error)
                if not error.retriable:
                    self._set_error(states, error)
                self._cluster.request_refresh()
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            for requested, row in fetch.rows(response):
                self._handle_partition(connection, response, requested, row)

    async def _fetchable_partitions(self, node_id: int) -> tuple[list[PartitionState], bool]:
        """Wait for fetchable partitions of this broker. Returns also whether none was left out because it is full."""
        wakeup_event = self._wakeups[node_id]
        has_waited = False
        while True:
            wakeup_event.clear()
            led = [state for state in self._subscription.states.values() if self._is_led_by(node_id, state)]
            now = self._loop.time()
            if to_validate := [state for state in led if state.is_fetchable(now) and self._needs_validation(state)]:
                await self._validate(node_id, to_validate)
                continue
            ready = [state for state in led if state.is_fetchable(now)]
            is_complete = not any(state.is_full() for state in led)
            if ready and (is_complete or has_waited):
                return ready, is_complete
            pauses = [state.not_before - now for state in led if state.not_before > now]
            if ready:
                pauses.append(_SHORT_WAIT_MS / 1000)
                has_waited = True
            await _wait(wakeup_event, min(pauses, default=None))

    def _is_led_by(self, node_id: int, state: PartitionState) -> bool:
        return state.fetch_offset is not None and self._cluster.leader(*state.partition) == node_id

    def _needs_validation(self, state: PartitionState) -> bool:
        known = self._cluster.image.partition(*state.partition)
        return known is not None and state.needs_validation(known.leader_epoch)

    async def _validate(self, node_id: int, states: list[PartitionState]) -> None:
        """Validate positions at a new leader; set the errors that cannot be retried."""
        for state, error in await self._validator.check(node_id, states):
            if not error.retriable:
                self._set_error([state], error)
            else:
                _LOG.info("%s", error)
                self._cluster.request_refresh()
                self._pause(state)
        self.wakeup()

    def _handle_partition(
        self, connection: Connection, response: FetchResponse, requested: RequestedPartition, row: PartitionData
    ) -> None:
        state = requested.state
        topic, partition = state.partition
        if row.error_code:
            error = broker_error(row.error_code, _TRIED, broker=connection.name, topic=topic, partition=partition)
            self._handle_partition_error(state, error, response, row)
            return
        state.backoff = None
        state.high_watermark = row.high_watermark
        if not row.records:
            return
        config = self._config
        aborted = (row.aborted_transactions or []) if config.reads_committed else None
        try:
            fetched = CompletedFetch(
                state.partition, row.records, requested.offset, check_crcs=config.check_crcs, aborted=aborted
            )
            if fetched.next_offset == requested.offset:
                raise self._cut_off_error(state, requested.offset)
        except ClientError as error:
            self._set_error([state], error)
            return
        state.add(fetched, requested.leader_epoch)
        self._subscription.move_to_end(state)
        self.arrived.set()

    def _handle_partition_error(
        self, state: PartitionState, error: BrokerError, response: FetchResponse, row: PartitionData
    ) -> None:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.buffered:
                self._pause(state)  # the user reads the buffer first, which moves the position
            elif self._config.auto_offset_reset == "none":
                self._set_error([state], error)
            else:
                _LOG.warning("%s", error)
                state.seek(None)
                self.wakeup()
        elif error.retriable:
            _LOG.info("%s", error)
            if not (error.code in STALE_METADATA and self._update_leader(state, response, row)):
                self._pause(state)
        else:
            self._set_error([state], error)

    def _update_leader(self, state: PartitionState, response: FetchResponse, row: PartitionData) -> bool:
        """Store the new leader, if the error names it (KIP-951), and request metadata. Returns whether it is new."""
        leader = row.current_leader
        brokers = [(node.node_id, Address(node.host, node.port)) for node in response.node_endpoints]
        moved = self._cluster.update_leader(*state.partition, leader.leader_id, leader.leader_epoch, brokers)
        self._cluster.request_refresh()
        if moved:
            self.wakeup()
        return moved

    def _pause(self, state: PartitionState) -> None:
        if state.backoff is None:
            config = self._config
            state.backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        state.not_before = self._loop.time() + state.backoff.next()

    def _set_error(self, states: Iterable[PartitionState], error: ClientError) -> None:
        for state in states:
            state.error = error
        self.arrived.set()

    def _cut_off_error(self, state: PartitionState, offset: int) -> ClientError:
        topic, partition = state.partition
        return CorruptRecordsError(
            offset,
            "the broker sent only a part of it",
            "Raise max_partition_fetch_bytes above the size of the largest batch",
            topic=topic,
            partition=partition,
        )


async def _wait(event: asyncio.Event, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass

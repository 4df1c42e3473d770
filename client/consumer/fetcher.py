"""Fetching ahead of the user: one long poll at a time to each broker that leads assigned partitions.

```
            +--> nothing may be fetched: wait ---+
            +--> a new leader: ask it whether it has what was read (`truncation`)
choosing ---+--> some partition is full: wait a little, for all to go into one request
   ^        +--> Fetch, parked at the broker until there are records or fetch_max_wait_ms is over
   |                |
   +----------------+  records into the partitions' buffers, errors to where they belong
```
Bounds: a partition holds two answers at most (`subscription.MAX_BUFFERED`), of `max_partition_fetch_bytes` each (more
only where one batch is larger), and is left out of requests while it does. Because a parked request holds the place of
the next one, a request that leaves out a full partition parks for a short time only, and one that parks for nothing
(the user has sought elsewhere) is abandoned, which takes its connection.

| error of a partition | what happens |
|---|---|
| OFFSET_OUT_OF_RANGE | the position is looked up as `auto_offset_reset` says; "none": the user is told |
| one of stale metadata (`metadata.STALE_METADATA`) | new metadata, another attempt after a pause |
| another retriable one | another attempt after a pause |
| any other | the user is told at the next poll, then another attempt |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from odradek.client.config import Address, ConsumerConfig
from odradek.client.consumer.completed_fetch import Fetched
from odradek.client.consumer.fetch_positions import Positions
from odradek.client.consumer.fetch_request import Asked, PartitionFetch
from odradek.client.consumer.fetch_session import FetchSession
from odradek.client.consumer.offset_lookup import OffsetLookup
from odradek.client.consumer.position_validation import Truncation
from odradek.client.consumer.subscription_state import PartitionState, Subscription
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
"""How long to wait for a full partition, and to park a request without it. A user who takes longer to read a buffer is
slower than the broker anyway; one who is faster waits for this once."""


class Fetcher:
    """Keeps the partitions of one subscription supplied, from `start` to `close`.

    `arrived` is set whenever there may be news for the user: records, or an error.
    """

    def __init__(
        self, config: ConsumerConfig, cluster: Cluster, subscription: Subscription, lookup: OffsetLookup
    ) -> None:
        self.arrived = asyncio.Event()
        self._config = config
        self._cluster = cluster
        self._subscription = subscription
        self.positions = Positions(config, lookup, subscription, self.arrange)
        self._truncation = Truncation(config, cluster)
        self._loop = asyncio.get_running_loop()
        self._brokers: dict[int, asyncio.Task[None]] = {}
        self._news: dict[int, asyncio.Event] = {}
        self._in_flight: dict[int, tuple[Connection, PartitionFetch]] = {}
        self._is_running = False
        cluster.on_change.append(self.arrange)

    def start(self) -> None:
        """Begin to fetch; again, it does nothing."""
        if not self._is_running:
            self._is_running = True
            self.arrange()

    async def close(self) -> None:
        """Stop fetching; nothing is left running."""
        self._is_running = False
        await self.positions.close()
        for task in self._brokers.values():
            task.cancel()
        await asyncio.gather(*self._brokers.values(), return_exceptions=True)
        self.arrived.set()

    def arrange(self) -> None:
        """Look again at what is to be done: assignment, positions, metadata or errors have changed."""
        if not self._is_running:
            return
        self.positions.look_up_missing()
        for partition, state in self._subscription.states.items():
            if state.error is not None:
                self.arrived.set()
            if state.fetch_offset is None:
                continue
            leader = self._cluster.leader(*partition)
            if leader is None:
                self._cluster.refresh_soon()
            elif leader not in self._brokers:
                self._news[leader] = asyncio.Event()
                self._brokers[leader] = asyncio.create_task(self._fetch_from(leader))
        for news in self._news.values():
            news.set()
        for connection, fetch in list(self._in_flight.values()):
            if fetch.is_parked_for_nothing():
                connection.close()

    def drained(self, state: PartitionState) -> None:
        """The user has read a buffer of this partition."""
        leader = self._cluster.leader(*state.partition)
        if leader in self._news:
            self._news[leader].set()

    async def _fetch_from(self, node_id: int) -> None:
        """Fetch from one broker for ever."""
        config = self._config
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        session = FetchSession()
        while True:
            states, is_complete = await self._choose(node_id)
            max_wait_ms = config.fetch_max_wait_ms if is_complete else min(config.fetch_max_wait_ms, _SHORT_WAIT_MS)
            try:
                connection = await self._cluster.connection(node_id, Purpose.FETCH)
                fetch = PartitionFetch(config, self._cluster.image, connection, session, states, max_wait_ms)
                self._in_flight[node_id] = connection, fetch
                try:
                    answer = await connection.send(fetch.message, FetchResponse, version=fetch.version)
                except ClientError:
                    session.lost()
                    raise
                finally:
                    del self._in_flight[node_id]
                session.answered(answer)
                if answer.error_code:
                    raise broker_error(answer.error_code, _TRIED, broker=connection.name)
            except ClosedError:
                continue  # abandoned
            except ClientError as error:
                _LOG.info("%s", error)
                if not error.retriable:
                    self._tell(states, error)
                self._cluster.refresh_soon()
                await asyncio.sleep(backoff.next())
                continue
            backoff.reset()
            for asked, row in fetch.rows(answer):
                self._take(connection, answer, asked, row)

    async def _choose(self, node_id: int) -> tuple[list[PartitionState], bool]:
        """Wait until partitions led by this broker may be fetched. False: full ones are left out."""
        news = self._news[node_id]
        has_waited = False
        while True:
            news.clear()
            led = [state for state in self._subscription.states.values() if self._leads(node_id, state)]
            now = self._loop.time()
            if unchecked := [state for state in led if state.may_fetch(now) and self._is_unchecked(state)]:
                await self._check(node_id, unchecked)
                continue
            ready = [state for state in led if state.may_fetch(now)]
            is_complete = not any(state.is_full() for state in led)
            if ready and (is_complete or has_waited):
                return ready, is_complete
            pauses = [state.not_before - now for state in led if state.not_before > now]
            if ready:
                pauses.append(_SHORT_WAIT_MS / 1000)
                has_waited = True
            await _wait(news, min(pauses, default=None))

    def _leads(self, node_id: int, state: PartitionState) -> bool:
        return state.fetch_offset is not None and self._cluster.leader(*state.partition) == node_id

    def _is_unchecked(self, state: PartitionState) -> bool:
        known = self._cluster.image.partition(*state.partition)
        return known is not None and state.is_unchecked(known.leader_epoch)

    async def _check(self, node_id: int, states: list[PartitionState]) -> None:
        """Ask a new leader whether it has what was read from others; what it has not is dealt with, or told."""
        for state, error in await self._truncation.check(node_id, states):
            if not error.retriable:
                self._tell([state], error)
            else:
                _LOG.info("%s", error)
                self._cluster.refresh_soon()
                self._pause(state)
        self.arrange()

    def _take(self, connection: Connection, answer: FetchResponse, asked: Asked, row: PartitionData) -> None:
        state = asked.state
        topic, partition = state.partition
        if row.error_code:
            error = broker_error(row.error_code, _TRIED, broker=connection.name, topic=topic, partition=partition)
            self._failed(state, error, answer, row)
            return
        state.backoff = None
        state.high_watermark = row.high_watermark
        if not row.records:
            return
        config = self._config
        aborted = (row.aborted_transactions or []) if config.reads_committed else None
        try:
            fetched = Fetched(state.partition, row.records, asked.offset, check_crcs=config.check_crcs, aborted=aborted)
            if fetched.next_offset == asked.offset:
                raise self._cut_off(state, asked.offset)
        except ClientError as error:
            self._tell([state], error)
            return
        state.add(fetched, asked.leader_epoch)
        self._subscription.to_the_end(state)
        self.arrived.set()

    def _failed(self, state: PartitionState, error: BrokerError, answer: FetchResponse, row: PartitionData) -> None:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.buffered:
                self._pause(state)  # the user reads what is there first, and the position goes with it
            elif self._config.auto_offset_reset == "none":
                self._tell([state], error)
            else:
                _LOG.warning("%s", error)
                state.seek(None)
                self.arrange()
        elif error.retriable:
            _LOG.info("%s", error)
            if not (error.code in STALE_METADATA and self._moved(state, answer, row)):
                self._pause(state)
        else:
            self._tell([state], error)

    def _moved(self, state: PartitionState, answer: FetchResponse, row: PartitionData) -> bool:
        """Take over the new leader, if the refusal names it (KIP-951); ask for metadata in any case."""
        leader = row.current_leader
        brokers = [(node.node_id, Address(node.host, node.port)) for node in answer.node_endpoints]
        moved = self._cluster.learn_leader(*state.partition, leader.leader_id, leader.leader_epoch, brokers)
        self._cluster.refresh_soon()
        if moved:
            self.arrange()
        return moved

    def _pause(self, state: PartitionState) -> None:
        if state.backoff is None:
            config = self._config
            state.backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        state.not_before = self._loop.time() + state.backoff.next()

    def _tell(self, states: Iterable[PartitionState], error: ClientError) -> None:
        for state in states:
            state.error = error
        self.arrived.set()

    def _cut_off(self, state: PartitionState, offset: int) -> ClientError:
        topic, partition = state.partition
        return CorruptRecordsError(
            offset,
            "the broker sent no more than a part of it",
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

"""The cluster of one client: its current metadata, and connections by node id.

Each producer, consumer and admin owns one Cluster. It stores the last metadata (`image`) and requests new ones when
they are old, when a caller finds them wrong (`request_refresh`) or needs a topic that they lack (`topic`). At most one
request for metadata is in flight. Requests for the same topics have a backoff between them, which grows while the
responses are all equal.

Any broker can answer: one that is connected, else one that is in the metadata, else the bootstrap servers again, so
that a client survives a change of all addresses (KIP-899).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Sequence

from odradek.client.config import Address, ClientConfig
from odradek.client.errors import (
    BootstrapError,
    BrokerError,
    BrokerUnreachableError,
    ClientError,
    ClosedError,
    TimeLimitError,
    broker_error,
)
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster_image import ClusterImage, TopicMetadata
from odradek.client.network.connection import Connection
from odradek.client.network.connections import Connections, Purpose
from odradek.client.network.outcome import outcome_of
from odradek.client.network.transport import Network
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_LOG = logging.getLogger(__name__)

_CURE = "Check the bootstrap servers, and advertised.listeners of the brokers"


class Cluster:
    """Metadata and connections of one client, for one event loop, from `start` to `close`.

    The functions in `on_change` are called after each attempt to get metadata, successful or not, and after a
    connection has closed: work that had to wait may be possible then.
    """

    def __init__(self, config: ClientConfig, network: Network, *, creates_topics: bool = False) -> None:
        self.image = ClusterImage()
        self.connections = Connections(config, network)
        self.connections.on_change = self._notify
        self.on_change: list[Callable[[], None]] = []
        self._config = config
        self._creates_topics = creates_topics
        self._tracked: dict[object, frozenset[str]] = {}
        self._refresh: asyncio.Task[None] | None = None
        self._requested_topics: frozenset[str] = frozenset()
        self._metadata_source: str | None = None
        self._requested_at = float("-inf")
        self._backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        self._age_timer: asyncio.TimerHandle | None = None
        self._connecting: dict[int, asyncio.Task[None]] = {}
        self._refresh_failure: ClientError | None = None  # of the last refresh
        self._is_closed = False

    async def start(self, timeout_ms: int = 0) -> None:
        """Get the first metadata; retry for `timeout_ms` if no bootstrap server responds. Raises BootstrapError.

        An error that lasts is raised at once: the names of all servers are unknown, or the peer is not a broker.
        """
        failure: ClientError | None = None
        limit = asyncio.timeout(timeout_ms / 1000 if timeout_ms > 0 else None)
        try:
            async with limit:
                while True:
                    try:
                        await self.refresh()  # pauses between attempts
                        return
                    except ClientError as error:
                        if timeout_ms <= 0 or not error.retriable or _lasts(error):
                            raise
                        if failure is None:
                            _LOG.warning("%s; the client retries for %d ms", error.summary, timeout_ms)
                        failure = error
        except TimeoutError as error:
            if not limit.expired():
                raise
            if failure is None:
                raise BootstrapError(
                    "find the cluster", f"no bootstrap server responded within {timeout_ms} ms", _CURE
                ) from error
            raise BootstrapError(
                failure.tried, f"{failure.cause}; retried for {timeout_ms} ms", failure.cure, broker=failure.broker
            ) from failure

    async def close(self) -> None:
        """Cancel all tasks and close every connection, also if it is cancelled."""
        self._is_closed = True
        if self._age_timer is not None:
            self._age_timer.cancel()
        tasks = [*self._connecting.values(), *([self._refresh] if self._refresh else [])]
        for task in tasks:
            task.cancel()
        self.connections.close_now()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.connections.close()

    def leader(self, topic: str, partition: int) -> int | None:
        """The node id of the leader; None if there is none, or if the metadata lack it or the partition."""
        known = self.image.partition(topic, partition)
        return known.leader if known is not None and known.leader in self.image.brokers else None

    def leader_failure(self, topic: str, partition: int) -> ClientError | None:
        """The last error on the way to the leader of a partition, or None."""
        leader = self.leader(topic, partition)
        if leader is not None:
            return None if self.established(leader) else self.connections.failure(leader)
        if self._refresh_failure is not None:
            return self._refresh_failure
        code = self.image.errors.get(topic, ErrorCode.LEADER_NOT_AVAILABLE)
        return broker_error(code, "find the leader", broker=self._metadata_source, topic=topic, partition=partition)

    def established(self, node_id: int, purpose: Purpose = Purpose.REQUESTS) -> Connection | None:
        """The open connection to a node, or None."""
        return self.connections.established(node_id, purpose)

    async def connection(self, node_id: int, purpose: Purpose = Purpose.REQUESTS) -> Connection:
        """The connection to a node, opened if necessary. Raises ClientError, after a request for new metadata."""
        address = self.image.brokers.get(node_id)
        if address is None:
            self.request_refresh()
            raise BootstrapError("connect", f"broker {node_id} is not in the cluster's metadata")
        try:
            return await self.connections.get(node_id, address, purpose)
        except ClientError:
            self.request_refresh()
            raise

    async def any_connection(self) -> Connection:
        """A connection to any broker that can be reached. Raises BootstrapError, which lists all attempts."""
        established = self.connections.all_established(Purpose.REQUESTS)
        if established:
            return established[0]
        failures = []
        brokers = list(self.image.brokers.items())
        random.shuffle(brokers)
        for node_id, address in brokers:
            try:
                return await self.connections.get(node_id, address)
            except ClosedError:
                raise
            except ClientError as error:
                failures.append(error)
        return await self._bootstrap(failures)

    def connect_in_background(self, node_id: int) -> None:
        """Connect to a node in the background; `on_change` is called afterwards, successful or not."""

        async def connect() -> None:
            is_known = self.connections.failure(node_id) is not None
            try:
                await self.connection(node_id)
            except ClientError as error:
                _LOG.log(logging.INFO if is_known else logging.WARNING, "%s", error)  # one warning for each outage
            self._connecting.pop(node_id, None)  # an eager task ends before it is there
            self._notify()

        known = self._connecting.get(node_id)
        if not self._is_closed and (known is None or known.done()):
            self._connecting[node_id] = asyncio.create_task(connect())

    def request_refresh(self) -> asyncio.Task[None]:
        """Request metadata in the background, unless a request is in flight; return its task."""
        if self._is_closed:
            raise ClosedError("request metadata", "the client was closed")
        if self._refresh is None or self._refresh.done():  # a task that is done requests nothing any more
            self._refresh = asyncio.create_task(self._get_metadata())
            self._refresh.add_done_callback(self._refresh_ended)
        return self._refresh

    async def refresh(self) -> None:
        """Request metadata and wait for the response. Raises ClientError."""
        await outcome_of(self.request_refresh())

    def track(self, user: object, topics: Collection[str]) -> None:
        """Request metadata of these topics for a user, in place of those that it tracked before.

        Topics without metadata are requested soon.
        """
        if topics:
            self._tracked[user] = frozenset(topics)
        else:
            self._tracked.pop(user, None)
        if not self.image.topics.keys() >= set(topics):
            self.request_refresh()

    def untrack_topics(self) -> None:
        """Refresh the metadata of no topic any more; those in the image remain until the next refresh."""
        self._tracked.clear()

    def forget_topics(self) -> None:
        """Forget all topics; their metadata are requested again when a caller needs them."""
        self.untrack_topics()
        self._requested_topics = frozenset()
        self._set_image(self.image.only(()))

    def _topics(self) -> frozenset[str]:
        return frozenset().union(*self._tracked.values())

    async def topic(self, name: str, timeout_ms: int, *, keep: bool = True, partitions: int = 0) -> TopicMetadata:
        """The metadata of a topic, requested until they exist or `timeout_ms` is over; with `keep` it stays tracked.

        Metadata of fewer than `partitions` are requested again, as some may have been added since.

        Raises UnknownTopicError and other BrokerErrors, TimeLimitError.
        """
        known = self.image.topics.get(name)
        requests = 2 if self._refresh is not None else 1  # the one under way may be older than the partitions
        while known is None or (len(known.partitions) < partitions and requests):
            requests -= 1
            known = await self._wait_for_topic(name, timeout_ms)
        if keep:
            self.track(f"topic {name}", {name})
        return known

    async def _wait_for_topic(self, name: str, timeout_ms: int) -> TopicMetadata:
        """Request metadata until they have the topic."""
        user = object()
        failure: ClientError | None = None
        self._tracked[user] = frozenset({name})
        limit = asyncio.timeout(timeout_ms / 1000)
        try:
            async with limit:
                while True:
                    try:
                        await self.refresh()
                        failure = self.topic_failure(name)
                        known = self.image.topics.get(name)
                    except ClientError as error:
                        failure, known = error, None
                    if known is not None:
                        return known
                    if failure is not None and not failure.retriable:
                        raise failure
        except TimeoutError:
            if not limit.expired():
                raise
            failure = failure or self.topic_failure(name)
            raise failure or TimeLimitError("find a topic", f"no metadata within {timeout_ms} ms", topic=name) from None
        finally:
            del self._tracked[user]

    def update_leader(
        self, topic: str, partition: int, leader: int, leader_epoch: int, brokers: list[tuple[int, Address]]
    ) -> bool:
        """Store the new leader that an error response names (KIP-951). Returns whether it was unknown before."""
        before = self.image
        self._set_image(before.with_brokers(brokers).with_leader(topic, partition, leader, leader_epoch))
        return self.image is not before

    def topic_failure(self, name: str) -> BrokerError | None:
        """The error of a topic in the last metadata, if any."""
        code = self.image.errors.get(name)
        return None if code is None else broker_error(code, "find a topic", broker=self._metadata_source, topic=name)

    async def _get_metadata(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._requested_at > 2 * self._config.retry_backoff_max_ms / 1000:
            self._backoff.reset()  # the last refresh was long ago, so its backoff does not matter
        if self._topics() <= self._requested_topics:
            await asyncio.sleep(max(0, self._requested_at + self._backoff.next() - loop.time()))
        self._requested_at = loop.time()
        connection = await self.any_connection()
        self._requested_topics = self._topics()
        wanted = [MetadataRequestTopic(name=name) for name in sorted(self._requested_topics)]
        request = MetadataRequest(wanted, self._creates_topics)
        response = await connection.send(request, MetadataResponse)
        if response.error_code:
            raise broker_error(response.error_code, "request metadata", broker=connection.name)
        before = self.image
        self._metadata_source = connection.name
        self._merge(response)
        self.image = self.image.only(self._requested_topics | self._topics())
        if self.image != before:
            self._backoff.reset()

    def _merge(self, response: MetadataResponse) -> None:
        self._set_image(self.image.merge(response))
        self._refresh_after(self._config.metadata_max_age_ms)

    def _refresh_after(self, milliseconds: int) -> None:
        """Request metadata at that time, in place of the time that was planned before."""
        if self._age_timer is not None:
            self._age_timer.cancel()
        if not self._is_closed:
            self._age_timer = asyncio.get_running_loop().call_later(milliseconds / 1000, self.request_refresh)

    def _set_image(self, image: ClusterImage) -> None:
        before, self.image = self.image, image
        for node_id, address in before.brokers.items():
            if image.brokers.get(node_id) != address:
                self.connections.drop(node_id)

    async def _bootstrap(self, failures: list[ClientError]) -> Connection:
        servers = list(self._config.bootstrap_servers)
        random.shuffle(servers)
        for address in servers:
            try:
                return await self._identify(await self.connections.open_address(address), address)
            except ClosedError:
                raise
            except ClientError as error:
                failures.append(error)
        if len({type(failure) for failure in failures}) == 1 and not failures[0].retriable:
            raise failures[0]  # of all: they refuse the same credentials, or are not trusted
        unreachable = BootstrapError(
            "find the cluster",
            "; ".join(f"{failure.broker}: {failure.cause}" for failure in failures),
            _cure(failures),
        )
        unreachable.failures = tuple(failures)
        raise unreachable

    async def _identify(self, connection: Connection, address: Address) -> Connection:
        """Find the node id of a bootstrap server, and keep its connection as that of the node.

        If no broker advertises the address of the bootstrap server, the connection is replaced by one to an advertised
        address, as every client of Kafka does.
        """
        try:
            self._merge(await connection.send(MetadataRequest([], False), MetadataResponse))
        except BaseException:
            connection.close()
            raise
        for node_id, advertised in self.image.brokers.items():
            if advertised == address and self.established(node_id) is None:
                self.connections.adopt(node_id, connection)
                return connection
        connection.close()
        if not self.image.brokers:
            raise BootstrapError("find the cluster", "the metadata contain no broker", broker=connection.name)
        node_id, advertised = random.choice(list(self.image.brokers.items()))
        return await self.connections.get(node_id, advertised)

    def _refresh_ended(self, task: asyncio.Task[None]) -> None:
        if self._refresh is task:
            self._refresh = None
        if task.cancelled():
            return
        error = task.exception()
        self._refresh_failure = error if isinstance(error, ClientError) else None
        if error is not None:
            _LOG.info("%s", error)  # callers that need the metadata raise it or request them again
            self._refresh_after(self._config.retry_backoff_max_ms)  # a caller that only waits for a change does not
        elif not self._topics() <= self._requested_topics and not self._is_closed:
            self.request_refresh()  # for topics that were added after the request was sent
        self._notify()

    def _notify(self) -> None:
        if not self._is_closed:
            for function in self.on_change:
                function()


def _cure(failures: Sequence[ClientError]) -> str:
    """The cure for a failure of all servers. The error of a server that responded is more specific than silence."""
    answered = (failure.cure for failure in failures if not isinstance(failure, BrokerUnreachableError))
    return next(filter(None, answered), _CURE)


def _lasts(error: ClientError) -> bool:
    """Whether each server failed in a way that a restart of the servers does not change."""
    failures = error.failures if isinstance(error, BootstrapError) else ()
    return bool(failures) and all(
        not failure.retriable or (isinstance(failure, BrokerUnreachableError) and failure.is_unknown_host)
        for failure in failures
    )

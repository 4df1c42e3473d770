"""The execution of admin calls: the brokers that requests go to, retries and time limits; an error for each item.

```
items --> attempt --> outcomes --> those with a retriable error --> backoff, new metadata --+
             ^                                                                              |
             +------------------- until none is left, or the time is over ------------------+
```
An attempt sends requests for the remaining items to the brokers responsible for them: to any broker (which forwards the
controller's requests to it), to leaders of partitions, to coordinators, or to the brokers in the items. An error that
an attempt raises is the error of all its items. An unknown topic is not retried, although its error is retriable: the
caller of an admin call is supposed to know which topics exist. When the time is over, items keep the outcomes that have
arrived, so that a broker without a response costs only its own items theirs.

A request without a response is repeated, as in Kafka's client. The first one may have been executed, so
TOPIC_ALREADY_EXISTS or an unknown topic can be a result of this call itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from odradek.client.admin.results import Results
from odradek.client.config import AdminConfig
from odradek.client.errors import (
    ClientError,
    ClosedError,
    ConfigurationError,
    TimeLimitError,
    UnknownTopicError,
    broker_error,
)
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster
from odradek.client.network.cluster_image import NO_LEADER, ClusterImage
from odradek.client.network.connection import Connection
from odradek.client.network.coordinator import KeyType, find_coordinators
from odradek.client.record import TopicPartition
from odradek.protocol.api import METADATA_KEY
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.plural import pluralize

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

Outcomes = Mapping[K, V | ClientError]
Attempt = Callable[[Sequence[K]], Awaitable[Outcomes[K, V]]]
BrokerCall = Callable[[Connection, Sequence[K]], Awaitable[Outcomes[K, V]]]

_CALLER_ERRORS = (ClosedError, ConfigurationError)  # raised by the call instead of becoming the error of an item
_MAY_STILL_HAPPEN = "The request may still be executed"

_arrived: ContextVar[dict[Any, Any]] = ContextVar("_arrived")
"""The outcomes that brokers have returned in the current attempt; an attempt returns those of all brokers."""


class Calls:
    """The calls of one Admin; any number may run at the same time."""

    def __init__(self, config: AdminConfig, cluster: Cluster) -> None:
        self.config = config
        self.cluster = cluster

    async def for_each(
        self, tried: str, items: Iterable[K], attempt: Attempt[K, V], timeout_ms: int | None
    ) -> Results[K, V]:
        """Repeat `attempt` until every item has a value or a final error. `tried` names the operation in errors."""
        config = self.config
        results: Results[K, V] = Results()
        left = list(dict.fromkeys(items))
        order = list(left)
        arrived: dict[K, V | ClientError] = {}
        milliseconds = config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
        limit = asyncio.timeout(milliseconds / 1000)
        try:
            async with limit:
                while left:
                    _arrived.set(arrived := {})
                    results.update(await self._outcomes(tried, left, attempt))
                    left = [item for item in left if _should_retry(results[item])]
                    if left:
                        await asyncio.sleep(backoff.next())
                        await self._refresh()
        except TimeoutError:
            if not limit.expired():
                raise
            late = TimeLimitError(tried, f"no response within {milliseconds} ms", _MAY_STILL_HAPPEN)
            for item in left:
                results[item] = arrived.get(item, results.get(item, late))
        return Results({item: results[item] for item in order})

    async def once(
        self, tried: str, call: Callable[[Connection], Awaitable[V]], timeout_ms: int | None, node_id: int | None = None
    ) -> V:
        """Get the single result of a call from one broker, or from any. Raises ClientError."""

        async def attempt(items: Sequence[str]) -> dict[str, V | ClientError]:
            target = None if node_id is None else await self.existing_broker(tried, node_id)
            if isinstance(target, ClientError):
                return dict.fromkeys(items, target)
            connection = await (self.cluster.any_connection() if target is None else self.cluster.connection(target))
            return dict.fromkeys(items, await call(connection))

        return (await self.for_each(tried, [tried], attempt, timeout_ms)).value(tried)

    async def controller(self) -> Connection:
        """A connection to the controller, or to any broker, which forwards requests, if none is known."""
        image = self.cluster.image
        if image.controller_id in image.brokers:
            return await self.cluster.connection(image.controller_id)
        return await self.cluster.any_connection()

    async def existing_broker(self, tried: str, node_id: int) -> int | ClientError:
        """The node id that the caller gave, for `at_brokers`, or the error that the cluster has no such broker.

        New metadata are requested for that, so that a wrong id is an error at once and not a timeout.
        """
        if node_id not in self.cluster.image.brokers:
            await self.cluster.refresh()
        brokers = sorted(self.cluster.image.brokers)
        if node_id in brokers:
            return node_id
        there = ", ".join(map(str, brokers)) or "none"
        cause = f"the cluster has no broker {node_id} (it has {there})"
        return ClientError(tried, cause, "Check its id, and that it runs")

    async def at_brokers(
        self, targets: Mapping[K, int | ClientError | None], call: BrokerCall[K, V]
    ) -> dict[K, V | ClientError]:
        """Send the items to their brokers (None: any), all at once. An error as target is the item's outcome."""
        outcomes: dict[K, V | ClientError] = {}
        by_broker: dict[int | None, list[K]] = {}
        for item, target in targets.items():
            if isinstance(target, ClientError):
                outcomes[item] = target
            else:
                by_broker.setdefault(target, []).append(item)
        for answered in await asyncio.gather(
            *(self._send_to(target, items, call) for target, items in by_broker.items())
        ):
            outcomes.update(answered)
        return outcomes

    async def metadata(
        self, connection: Connection, topics: list[MetadataRequestTopic] | None, *, at_least: int = 0
    ) -> MetadataResponse:
        """Request the metadata of topics (None: all) in a version from `at_least` on, without creating them."""
        version = connection.versions.highest(METADATA_KEY, at_least=at_least)
        response = await connection.send(MetadataRequest(topics, False), MetadataResponse, version=version)
        if response.error_code:
            raise broker_error(response.error_code, "request metadata", broker=connection.name)
        return response

    async def leaders(
        self, tried: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | ClientError | None]:
        """The current leader of each partition, for `at_brokers`, or the error that it has none."""
        connection = await self.cluster.any_connection()
        topics = sorted({partition.topic for partition in partitions})
        response = await self.metadata(connection, [MetadataRequestTopic(name=topic) for topic in topics])
        image = ClusterImage().merge(response)
        return {partition: _leader(image, tried, partition, connection.name) for partition in partitions}

    async def coordinators(
        self, tried: str, keys: Sequence[str], key_type: KeyType = KeyType.GROUP
    ) -> dict[str, int | ClientError | None]:
        """The coordinator of each group or transactional id, for `at_brokers`, or the error that there is none."""
        connection = await self.cluster.any_connection()
        return {
            found.key: broker_error(
                found.error_code, f"{tried} {found.key}", found.error_message, broker=connection.name
            )
            if found.error_code
            else found.node_id
            for found in await find_coordinators(connection, keys, key_type)
        }

    async def _send_to(self, target: int | None, items: list[K], call: BrokerCall[K, V]) -> Outcomes[K, V]:
        try:
            connection = await (self.cluster.any_connection() if target is None else self.cluster.connection(target))
            outcomes = await call(connection, items)
        except _CALLER_ERRORS:
            raise
        except ClientError as error:
            outcomes = dict.fromkeys(items, error)
        _arrived.get().update(outcomes)
        return outcomes

    async def _outcomes(self, tried: str, items: list[K], attempt: Attempt[K, V]) -> dict[K, V | ClientError]:
        """Run an attempt; every item gets an outcome."""
        try:
            outcomes = await attempt(items)
        except _CALLER_ERRORS:
            raise
        except ClientError as error:
            return dict.fromkeys(items, error)
        unnamed = ClientError(tried, "the broker's response does not contain it")
        return {item: outcomes.get(item, unnamed) for item in items}

    async def _refresh(self) -> None:
        try:
            await self.cluster.refresh()
        except ClosedError:
            raise
        except ClientError:
            pass  # the next attempt returns the error


def _leader(image: ClusterImage, tried: str, partition: TopicPartition, broker: str) -> int | ClientError:
    topic, index = partition
    code = image.errors.get(topic, ErrorCode.LEADER_NOT_AVAILABLE)
    detail = None
    if topic in image.topics:
        known = image.partition(topic, index)
        if known is not None and known.leader != NO_LEADER:
            return known.leader
        if known is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            detail = f"the topic has {pluralize(len(image.topics[topic].partitions), 'partition')}"
    return broker_error(code, tried, detail, broker=broker, topic=topic, partition=index)


def _should_retry(outcome: object) -> bool:
    return isinstance(outcome, ClientError) and outcome.retriable and not isinstance(outcome, UnknownTopicError)

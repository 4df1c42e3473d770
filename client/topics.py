"""Creating topics, for those who hold a Cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from client.backoff import Backoff
from client.cluster import Cluster
from client.config import ClientConfig
from client.connection import Connection
from client.errors import ClientError, broker_error
from client.metadata import TopicMetadata
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_TRIED = "create a topic"


async def create_topic(
    cluster: Cluster,
    config: ClientConfig,
    name: str,
    *,
    partitions: int = -1,
    replication_factor: int = -1,
    configs: Mapping[str, str] = {},
) -> TopicMetadata:
    """Create a topic and return its metadata once the cluster has them; -1 is the broker's default.

    Raises TopicExistsError and other BrokerErrors; a TransportError leaves open whether the topic was created.
    """
    topic = CreatableTopic(
        name,
        partitions,
        replication_factor,
        configs=[CreatableTopicConfig(property_name, value) for property_name, value in configs.items()],
    )
    request = CreateTopicsRequest([topic], config.request_timeout_ms)
    backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
    async with asyncio.timeout(config.request_timeout_ms / 1000):
        while True:
            connection = await _controller(cluster)
            answer = await connection.send(request, CreateTopicsResponse)
            told = answer.topics[0]
            if not told.error_code:
                return await cluster.topic(name, config.request_timeout_ms)
            error: ClientError = broker_error(
                told.error_code, _TRIED, told.error_message, broker=connection.name, topic=name
            )
            if not error.retriable:
                raise error
            await asyncio.sleep(backoff.next())
            await cluster.refresh()


async def _controller(cluster: Cluster) -> Connection:
    if cluster.image.controller_id in cluster.image.brokers:
        return await cluster.connection(cluster.image.controller_id)
    return await cluster.any_connection()

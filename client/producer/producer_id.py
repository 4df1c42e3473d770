"""The producer id of an idempotent producer (KIP-98): any broker allocates a unique one."""

from __future__ import annotations

import asyncio

from odradek.client.config import ClientConfig
from odradek.client.errors import ClientError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NO_TRANSACTION_TIMEOUT = 2**31 - 1
_CURE = "Ask for WRITE on the topics, or send without enable_idempotence"


async def init_producer_id(cluster: Cluster, config: ClientConfig, timeout_ms: int) -> int:
    """Request a producer id, and retry until `timeout_ms` is over. Raises ClientError."""
    backoff = Backoff(config.retry_backoff_ms / 1000, config.retry_backoff_max_ms / 1000)
    deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
    while True:
        try:
            return await _request(cluster)
        except ClientError as error:
            pause = backoff.next()
            if not error.retriable or asyncio.get_running_loop().time() + pause > deadline:
                raise
        await asyncio.sleep(pause)


async def _request(cluster: Cluster) -> int:
    connection = await cluster.any_connection()
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT)
    response = await connection.send(request, InitProducerIdResponse)
    if response.error_code:
        cure = _CURE if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else None
        raise broker_error(response.error_code, "get a producer id", cure=cure, broker=connection.name)
    return response.producer_id

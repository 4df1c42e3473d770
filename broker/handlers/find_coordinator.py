"""FindCoordinator (10), versions 0–6: the coordinator of a group (type 0) or a transactional id (type 1).

Versions 0–3 have one key, later versions (KIP-699) several. A group's coordinator leads the partition of
`__consumer_offsets` that the group belongs to. The first request creates that topic, and is answered when groups can be
coordinated. Differs from Kafka, which answers COORDINATOR_NOT_AVAILABLE until the topic exists, and the client retries.
If the topic cannot be created, the answer is COORDINATOR_NOT_AVAILABLE, and the reason is in the broker's log. Every
group id has a coordinator, also the empty one, because offsets may be committed under it.

Unknown key types are INVALID_REQUEST. Differs from Kafka: there are no transactions and no share groups (key type 2,
from version 6 on) yet. Such keys are refused so that clients fail at once:

| version | transactional id | because |
|---|---|---|
| 0–3 | this broker, which refuses the id in InitProducerId | sarama and librdkafka would repeat FindCoordinator |
| 4–6 | UNSUPPORTED_VERSION, with a message | Java's producer and others give up; Java's shows the message |
"""

from __future__ import annotations

from collections.abc import Awaitable

from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import broker_endpoint
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import (
    FIRST_VERSION_WITH_SEVERAL_KEYS,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP = 0
_TRANSACTION = 1
_KEY_TYPES = (0, 1, 2)
_NO_COORDINATOR = "The coordinator is not available."

_NO_TRANSACTIONS = KafkaError(ErrorCode.UNSUPPORTED_VERSION, "this broker has no transactions yet")
_NO_SHARE_GROUPS = KafkaError(ErrorCode.UNSUPPORTED_VERSION, "this broker has no share groups yet")


def handle(
    services: Services, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse] | Steps[FindCoordinatorResponse]:
    version = context.api_version
    several = version >= FIRST_VERSION_WITH_SEVERAL_KEYS
    if request.key_type not in _KEY_TYPES and several and not request.coordinator_keys:
        return FindCoordinatorResponse(coordinators=[])  # as in Kafka, which checks the type of each key
    if request.key_type not in _KEY_TYPES:
        return error_response(request, ErrorCode.INVALID_REQUEST, f"unknown key type {request.key_type}")
    keys = request.coordinator_keys if several else [request.key]
    if request.key_type == _TRANSACTION and not several:
        return _response(version, [_coordinator(services, context, request.key, services.config.node_id)])
    if request.key_type != _GROUP:
        refusal = _NO_TRANSACTIONS if request.key_type == _TRANSACTION else _NO_SHARE_GROUPS
        return _response(version, [Coordinator(key, -1, "", -1, refusal.code, refusal.detail) for key in keys])
    if services.groups.has_topic:
        return _find_all(services, context, keys)
    return _create_and_respond(services, context, keys)


def error_response(request: FindCoordinatorRequest, code: ErrorCode, message: str) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        rows = [Coordinator(key, -1, "", -1, code, message) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=rows)
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)


async def _create_and_respond(services: Services, context: RequestContext, keys: list[str]) -> FindCoordinatorResponse:
    await services.groups.create_topic()
    return await services.time_slices.finish(_find_all(services, context, keys), context.connection)


def _find_all(services: Services, context: RequestContext, keys: list[str]) -> Steps[FindCoordinatorResponse]:
    rows = []
    for key in keys:
        rows.append(_find(services, context, key))
        yield
    return _response(context.api_version, rows)


def _find(services: Services, context: RequestContext, key: str) -> Coordinator:
    return _coordinator(services, context, key, services.groups.coordinator_of(key))


def _coordinator(services: Services, context: RequestContext, key: str, node_id: int) -> Coordinator:
    broker = services.metadata.image.brokers.get(node_id)
    endpoint = None if broker is None else broker_endpoint(services, context, broker)
    if endpoint is None:
        message = "" if context.api_version >= FIRST_VERSION_WITH_SEVERAL_KEYS else _NO_COORDINATOR
        return Coordinator(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
    return Coordinator(key, endpoint.node_id, endpoint.host, endpoint.port, ErrorCode.NONE, "")


def _response(version: int, rows: list[Coordinator]) -> FindCoordinatorResponse:
    if version >= FIRST_VERSION_WITH_SEVERAL_KEYS:
        return FindCoordinatorResponse(coordinators=rows)
    [row] = rows
    return FindCoordinatorResponse(
        error_code=row.error_code,
        error_message=row.error_message or "NONE",
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )

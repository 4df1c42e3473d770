"""FindCoordinator (10), versions 0–6: the coordinator of a group (type 0) or a transactional id (type 1).

Versions 0–3 have one key, later versions (KIP-699) several. A group's coordinator leads the partition of
`__consumer_offsets` that the group belongs to. The first request creates that topic, and is answered when groups can be
coordinated. Differs from Kafka, which answers COORDINATOR_NOT_AVAILABLE until the topic exists, and the client retries.
If the topic cannot be created, the answer is COORDINATOR_NOT_AVAILABLE, and the reason is in the broker's log. Every
group id has a coordinator, also the empty one, because offsets may be committed under it.

The coordinator of a transactional id leads its partition of `__transaction_state`, which is created likewise.

Unknown key types are INVALID_REQUEST. Differs from Kafka: there are no share groups (key type 2, from version 6 on)
yet. Such keys are UNSUPPORTED_VERSION with a message, so that clients fail at once.
"""

from __future__ import annotations

from collections.abc import Awaitable

from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.broker.request.context import RequestContext
from odradek.broker.request.endpoints import broker_endpoint
from odradek.broker.request.rights import refusal_of
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.find_coordinator import (
    FIRST_VERSION_WITH_SEVERAL_KEYS,
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

Coordinators = GroupCoordinator | TransactionCoordinator

_GROUP = 0
_TRANSACTION = 1
_KEY_TYPES = (0, 1, 2)
_RESOURCE_TYPES = {_GROUP: ResourceType.GROUP, _TRANSACTION: ResourceType.TRANSACTIONAL_ID}
_NO_COORDINATOR = "The coordinator is not available."

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
    keys = list(dict.fromkeys(request.coordinator_keys)) if several else [request.key]
    if request.key_type not in (_GROUP, _TRANSACTION):
        return _response(
            version,
            [Coordinator(key, -1, "", -1, _NO_SHARE_GROUPS.code, _NO_SHARE_GROUPS.detail) for key in keys],
        )
    coordinators = services.groups if request.key_type == _GROUP else services.transactions
    if coordinators.has_topic:
        return _find_all(services, context, coordinators, request.key_type, keys)
    return _create_and_respond(services, context, coordinators, request.key_type, keys)


def error_response(request: FindCoordinatorRequest, code: ErrorCode, message: str) -> FindCoordinatorResponse:
    if request.coordinator_keys:
        rows = [Coordinator(key, -1, "", -1, code, message) for key in dict.fromkeys(request.coordinator_keys)]
        return FindCoordinatorResponse(coordinators=rows)
    return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1)


async def _create_and_respond(
    services: Services, context: RequestContext, coordinators: Coordinators, key_type: int, keys: list[str]
) -> FindCoordinatorResponse:
    time_slice = services.time_slices.begin(context.connection)
    for key in keys:
        await time_slice.step()
        if refusal_of(services, context, Operation.DESCRIBE, _RESOURCE_TYPES[key_type], key) is None:
            await coordinators.create_topic(services.topic_log.creations(context))
            break
    steps = _find_all(services, context, coordinators, key_type, keys)
    return await services.time_slices.finish(steps, context.connection)


def _find_all(
    services: Services, context: RequestContext, coordinators: Coordinators, key_type: int, keys: list[str]
) -> Steps[FindCoordinatorResponse]:
    rows = []
    for key in keys:
        refused = refusal_of(services, context, Operation.DESCRIBE, _RESOURCE_TYPES[key_type], key)
        if refused is not None:
            rows.append(Coordinator(key, -1, "", -1, refused.code, refused.detail))
        else:
            rows.append(_coordinator(services, context, key, coordinators.coordinator_of(key)))
        yield
    return _response(context.api_version, rows)


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

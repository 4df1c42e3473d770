"""InitProducerId (22), versions 0–5: a producer id and epoch for a producer (KIP-98, KIP-360).

Without a transactional id every request gets a new producer id with epoch 0. With one it goes to the coordinator of
that id, which fences the producer before (`odradek.broker.coordinator.transactions.transaction`). In this order:

| request | error |
|---|---|
| a transactional id that the client may not write to | TRANSACTIONAL_ID_AUTHORIZATION_FAILED |
| none, and neither IdempotentWrite on the cluster nor Write on any topic | CLUSTER_AUTHORIZATION_FAILED |
| only one of producer id and epoch (from version 3 on) | INVALID_REQUEST |
| an empty transactional id | INVALID_REQUEST |
| a timeout that is not positive, or above `transaction.max.timeout.ms` | INVALID_TRANSACTION_TIMEOUT |

PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below version 4.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from odradek.broker.coordinator.runtime.events import PendingReply, ProducerIdAndEpoch
from odradek.broker.coordinator.transactions.events import InitProducerId
from odradek.broker.coordinator.transactions.transaction import NO_EPOCH, NO_PRODUCER_ID
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import allows_on_any, allows_on_cluster, check, refused
from odradek.broker.request.services import Services
from odradek.broker.request.transactional_ids import check_transactional_id, submit
from odradek.protocol.access_rules import CLUSTER_NAME, Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_FIRST_VERSION_WITH_FENCED_CODE = 4


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    _check_rights(services, context, request.transactional_id)
    expected = _expected(request)
    if request.transactional_id is None:
        return _next_id(services)
    check_transactional_id(request.transactional_id)
    timeout_ms = request.transaction_timeout_ms
    if not 0 < timeout_ms <= services.config.transaction_max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT, f"{timeout_ms} is not between 1 and the maximum")
    event = InitProducerId(PendingReply(), timeout_ms, expected)
    has_fenced_code = context.api_version >= _FIRST_VERSION_WITH_FENCED_CODE
    reply = submit(services, request.transactional_id, event, has_fenced_code=has_fenced_code)
    return cast("InitProducerIdResponse | Awaitable[InitProducerIdResponse]", reply)


def error_response(request: InitProducerIdRequest, code: ErrorCode, message: str) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


def _check_rights(services: Services, context: RequestContext, transactional_id: str | None) -> None:
    if transactional_id is not None:
        check(services, context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
    elif not allows_on_cluster(services, context, Operation.IDEMPOTENT_WRITE) and not allows_on_any(
        services, context, Operation.WRITE, ResourceType.TOPIC
    ):
        raise refused(services, context, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)


def _expected(request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
    """Return the id and epoch that the producer has, None if it has none."""
    has_id, has_epoch = request.producer_id != NO_PRODUCER_ID, request.producer_epoch != NO_EPOCH
    if has_id != has_epoch:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer has both an id and an epoch, or neither")
    return ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None


async def _next_id(services: Services) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await services.producer_ids.next(), producer_epoch=0)

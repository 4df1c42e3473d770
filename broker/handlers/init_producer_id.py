"""InitProducerId (22), versions 0–5: a producer id for an idempotent producer (KIP-98, KIP-360).

Without a transactional id every request gets a new id with epoch 0; the id and epoch that a producer may send (from
version 3 on) are not looked at, as in Kafka. An empty transactional id is INVALID_REQUEST. A transactional id is
UNSUPPORTED_VERSION, as FindCoordinator says of it: there is no transaction coordinator yet.
"""

from __future__ import annotations

from collections.abc import Awaitable

from broker.handlers.find_coordinator import NO_TRANSACTIONS
from broker.handlers.services import Services
from broker.server.context import RequestContext
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.transactional_id is not None:
        raise KafkaError(NO_TRANSACTIONS.code, NO_TRANSACTIONS.detail)
    return _next_id(services)


def error_response(request: InitProducerIdRequest, code: ErrorCode, message: str) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


async def _next_id(services: Services) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await services.producer_ids.next(), producer_epoch=0)

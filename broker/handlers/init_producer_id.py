"""InitProducerId (22), versions 0–5: a producer id for an idempotent producer (KIP-98, KIP-360).

Without a transactional id every request gets a new id with epoch 0. The id and epoch that a producer may send (from
version 3 on) are ignored, as in Kafka. An empty transactional id is INVALID_REQUEST.

Differs from Kafka: a transactional id is TRANSACTIONAL_ID_AUTHORIZATION_FAILED, because there is no transaction
coordinator yet. It is the only error after which every client gives up at once; librdkafka repeats the request after
nearly all others until its timeout. The response has no field for a message; the reason is in the broker's log.
"""

from __future__ import annotations

from collections.abc import Awaitable

from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_LOG = StructuredLogger(__name__)


def handle(
    services: Services, context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Awaitable[InitProducerIdResponse]:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.transactional_id is not None:
        _LOG.warning("transactional id refused", id=request.transactional_id, reason="there are no transactions yet")
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "this broker has no transactions yet")
    return _next_id(services)


def error_response(request: InitProducerIdRequest, code: ErrorCode, message: str) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)


async def _next_id(services: Services) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await services.producer_ids.next(), producer_epoch=0)

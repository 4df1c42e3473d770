"""UnregisterBroker (64), version 0: forget a broker that has left the cluster for good (KIP-500).

BROKER_ID_NOT_REGISTERED for one that nothing is known of. Differs from Kafka: a broker that runs is refused with
INVALID_REQUEST. There it is taken out of the cluster under its own feet, and must be restarted to serve again.
"""

from __future__ import annotations

from odradek.broker.metadata.unregistration import forget_broker
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(
    services: Services, context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    await forget_broker(services.metadata, request.broker_id)
    return UnregisterBrokerResponse(error_message=None)


def error_response(request: UnregisterBrokerRequest, code: ErrorCode, message: str) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=code, error_message=message or None)

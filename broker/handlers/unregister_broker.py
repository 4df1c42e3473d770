"""UnregisterBroker (64), version 0: remove a broker that has left the cluster for good (KIP-500).

An unknown broker is BROKER_ID_NOT_REGISTERED. Differs from Kafka: a running broker is refused with INVALID_REQUEST.
Kafka removes it from the cluster while it runs, and it must be restarted to serve again.
"""

from __future__ import annotations

from odradek.broker.metadata.administration.unregistration import forget_broker
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

"""ConsumerGroupHeartbeat (68), versions 0–1: the one request of members of the consumer protocol (KIP-848).

A malformed request is INVALID_REQUEST, an unknown assignor UNSUPPORTED_ASSIGNOR, whatever the state of the group. The
group handles the rest: `odradek.broker.coordinator.consumer_group`. In version 0 the broker chooses the member id if
the request has none.
"""

from __future__ import annotations

import asyncio
import base64
from typing import cast

from odradek.broker.coordinator.consumer_group.checks import check_request
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    services: Services, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | asyncio.Future[ConsumerGroupHeartbeatResponse]:
    check_request(request, context.api_version, services.config.group_consumer_assignors)
    event = ConsumerHeartbeat(
        PendingReply(),
        request=request,
        new_member_id="" if request.member_id else _new_member_id(services),
        client_id=context.client_id or "",
        client_host=context.client_host,
    )
    answer = services.groups.submit(request.group_id, event)
    return cast("ConsumerGroupHeartbeatResponse | asyncio.Future[ConsumerGroupHeartbeatResponse]", answer)


def error_response(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message or None)


def _new_member_id(services: Services) -> str:
    """A random id in the form of Kafka's `Uuid`: 22 characters of base64url."""
    return base64.urlsafe_b64encode(services.metadata.randomness.uuid()).decode().rstrip("=")

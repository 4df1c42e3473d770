"""ConsumerGroupHeartbeat (68), versions 0–1: the one request of members of the consumer protocol (KIP-848).

A malformed request is INVALID_REQUEST, an unknown assignor UNSUPPORTED_ASSIGNOR, whatever the state of the group. The
group handles the rest: `odradek.broker.coordinator.consumer_group`. In version 0 the broker chooses the member id if
the request has none.

A group that the client may not read is GROUP_AUTHORIZATION_FAILED. It is TOPIC_AUTHORIZATION_FAILED to name a topic
that the client may not describe; a pattern does not match it. A pattern is compiled after the rights are checked, in a
thread; the group answers INVALID_REGULAR_EXPRESSION.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine
from typing import Any, cast

from odradek.broker.coordinator.consumer_group.checks import check_request
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat
from odradek.broker.coordinator.consumer_group.regular_expressions import refusal
from odradek.broker.coordinator.group_type import MayDescribe
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.rights import check, refused, topic_filter
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

Answer = (
    ConsumerGroupHeartbeatResponse
    | asyncio.Future[ConsumerGroupHeartbeatResponse]
    | Coroutine[Any, Any, ConsumerGroupHeartbeatResponse]
)


def handle(
    services: Services, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> Answer | Steps[Answer]:
    check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
    check_request(request, context.api_version, services.config.group_consumer_assignors)
    may_describe = topic_filter(services, context)
    if may_describe is None or not request.subscribed_topic_names:
        return _submit(services, context, request, may_describe)
    return _check_topics_and_submit(services, context, request, may_describe)


def _check_topics_and_submit(
    services: Services, context: RequestContext, request: ConsumerGroupHeartbeatRequest, may_describe: MayDescribe
) -> Steps[Answer]:
    for name in request.subscribed_topic_names or ():
        yield
        if not may_describe(name):
            raise refused(services, context, Operation.DESCRIBE, ResourceType.TOPIC, name)
    return _submit(services, context, request, may_describe)


def _submit(
    services: Services,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    may_describe: MayDescribe | None,
) -> Answer:
    if request.subscribed_topic_regex:
        return _compile_and_submit(services, context, request, may_describe)
    return _submit_now(services, context, request, may_describe)


async def _compile_and_submit(
    services: Services,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    may_describe: MayDescribe | None,
) -> ConsumerGroupHeartbeatResponse:
    await services.threads.compile(refusal, request.subscribed_topic_regex or "")
    answer = _submit_now(services, context, request, may_describe)
    return await answer if isinstance(answer, asyncio.Future) else answer


def _submit_now(
    services: Services,
    context: RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    may_describe: MayDescribe | None,
) -> ConsumerGroupHeartbeatResponse | asyncio.Future[ConsumerGroupHeartbeatResponse]:
    event = ConsumerHeartbeat(
        PendingReply(),
        request=request,
        new_member_id="" if request.member_id else _new_member_id(services),
        client_id=context.client_id or "",
        client_host=context.client_host,
        may_describe=may_describe,
    )
    return cast("ConsumerGroupHeartbeatResponse", services.groups.submit(request.group_id, event))


def error_response(
    request: ConsumerGroupHeartbeatRequest, code: ErrorCode, message: str
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message or None)


def _new_member_id(services: Services) -> str:
    """A random id in the form of Kafka's `Uuid`: 22 characters of base64url."""
    return base64.urlsafe_b64encode(services.metadata.randomness.uuid()).decode().rstrip("=")

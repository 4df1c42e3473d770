"""JoinGroup (11), versions 0–9: join a group; answered when the group has a new generation.

From version 4 on (KIP-394) a request without a member id is MEMBER_ID_REQUIRED, with the id to send next. In version 0
the session timeout is also the rebalance timeout. A session timeout outside group.min.session.timeout.ms and
group.max.session.timeout.ms is INVALID_SESSION_TIMEOUT, an empty group id INVALID_GROUP_ID, a group
that the client may not read GROUP_AUTHORIZATION_FAILED, more than 1,000 protocols
INVALID_REQUEST. The group handles the rest: `odradek.broker.coordinator.classic_group.group`. Before version 7 an error
has an empty protocol name instead of null.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.classic_group.member_effects import join_error
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.request.context import RequestContext
from odradek.broker.request.group_ids import check_group_id
from odradek.broker.request.rights import check, topic_filter
from odradek.broker.request.services import Services
from odradek.protocol.access_rules import Operation, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse

_FIRST_VERSION_WITH_MEMBER_IDS_REQUIRED = 4
_FIRST_VERSION_WITH_NULL_PROTOCOL = 7
_FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9
_MAX_PROTOCOLS = 1000


def handle(
    services: Services, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    may_be_null = context.api_version >= _FIRST_VERSION_WITH_NULL_PROTOCOL
    try:
        check(services, context, Operation.READ, ResourceType.GROUP, request.group_id)
        _check(services, request)
    except KafkaError as error:
        return _finished(join_error(error.code, request.member_id), may_be_null)
    try:
        answer = services.groups.submit(request.group_id, _join(services, context, request))
    except KafkaError as error:
        return _finished(_failed(error), may_be_null)
    if isinstance(answer, asyncio.Future):
        return _later(cast("asyncio.Future[JoinGroupResponse]", answer), may_be_null)
    return _finished(cast("JoinGroupResponse", answer), may_be_null)


def error_response(request: JoinGroupRequest, code: ErrorCode, message: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=request.member_id, protocol_name="")


def _check(services: Services, request: JoinGroupRequest) -> None:
    check_group_id(request.group_id)
    if len(request.protocols) > _MAX_PROTOCOLS:
        # Differs from Kafka, which accepts any number: the group reads all of them in one turn of the event loop.
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member has {_MAX_PROTOCOLS} protocols at most")
    config = services.config
    shortest, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        detail = f"the session timeout is {request.session_timeout_ms} ms, not between {shortest} and {longest}"
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, detail)


async def _later(answer: asyncio.Future[JoinGroupResponse], may_be_null: bool) -> JoinGroupResponse:
    try:
        response = await answer
    except KafkaError as error:
        response = _failed(error)
    return _finished(response, may_be_null)


def _failed(error: KafkaError) -> JoinGroupResponse:
    """Return the response to an error that the coordinator raises: it has no member id, as in Kafka."""
    return join_error(error.code, "")


def _finished(response: JoinGroupResponse, may_be_null: bool) -> JoinGroupResponse:
    if response.protocol_name is None and not may_be_null:
        response.protocol_name = ""
    return response


def _join(services: Services, context: RequestContext, request: JoinGroupRequest) -> Join:
    version = context.api_version
    client_id = context.client_id or ""
    named = client_id if request.group_instance_id is None else request.group_instance_id
    timeout = request.rebalance_timeout_ms
    return Join(
        PendingReply(),
        member_id=request.member_id,
        new_member_id=f"{named}-{services.groups.new_uuid()}",
        group_instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=context.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.session_timeout_ms if timeout < 0 else timeout,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
        reason=request.reason or "not provided",
        requires_known_member_id=version >= _FIRST_VERSION_WITH_MEMBER_IDS_REQUIRED,
        may_skip_assignment=version >= _FIRST_VERSION_THAT_SKIPS_ASSIGNMENT,
        may_describe=topic_filter(services, context),
    )

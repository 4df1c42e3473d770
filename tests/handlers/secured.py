"""A broker with access rules, and clients that are who their client ids say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler
from odradek.broker.request.services import Services
from odradek.broker.security.principal import Principal
from odradek.broker.startup.authorizer import make_authorizer
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.schema import Structure
from tests.wire import Wire

SUPER_USER = Principal("User", "admin")

TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
ANY = 1
REFUSALS = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}


FEW_LOGS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}


async def coordinate(wire: Wire) -> None:
    """Create the logs of groups and transactions, which their coordinators need."""
    for key_type in (0, 1):
        response = await wire.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"]), 4)
        assert response.coordinators[0].error_code == ErrorCode.NONE


def secure(broker: Broker, *, allow_everyone: bool = False) -> None:
    """Give a broker that is not started an authorizer, and let the client id of a request be its principal."""

    def on_start() -> None:
        services = broker.services
        authorizer = make_authorizer(services.metadata, [SUPER_USER], allow_everyone=allow_everyone)
        object.__setattr__(services, "authorizer", authorizer)
        broker.routes.add_interceptor(_as_client_id)

    broker.on_start.append(on_start)


@asynccontextmanager
async def secured_broker() -> AsyncIterator[Broker]:
    """A running broker with access rules and few logs."""
    broker = Broker(FEW_LOGS)
    secure(broker)
    async with broker:
        yield broker


def _as_client_id(handler: Handler) -> Handle:
    """Let the other brokers of a cluster be the user `broker`, and every other client what its client id says."""

    def handle(services: Services, context: RequestContext, request: Any) -> Answer:
        name = context.client_id or ""
        if name.startswith("broker-"):
            name = "broker"
        if context.connection.principal.name != name:
            context.connection.principal = Principal("User", name)
        return handler.handle(services, context, request)

    return handle


async def allow(wire: Wire, principal: str, *rights: tuple[Operation, ResourceType, str]) -> None:
    """Create rules that allow operations on resources by their names; `wire` is the super user's."""
    await change(wire, principal, PermissionType.ALLOW, rights)


async def deny(wire: Wire, principal: str, *rights: tuple[Operation, ResourceType, str]) -> None:
    await change(wire, principal, PermissionType.DENY, rights)


async def change(
    wire: Wire, principal: str, permission: PermissionType, rights: tuple[tuple[Operation, ResourceType, str], ...]
) -> None:
    creations = [
        AclCreation(kind, name, PatternType.LITERAL, f"User:{principal}", "*", operation, permission)
        for operation, kind, name in rights
    ]
    response = await wire.ask(CreateAclsRequest(creations), 3)
    assert [row.error_code for row in response.results] == [ErrorCode.NONE] * len(creations)


async def revoke(wire: Wire, principal: str) -> None:
    """Delete all rules of a principal."""
    wanted = DeleteAclsFilter(ANY, None, ANY, f"User:{principal}", None, ANY, ANY)
    [result] = (await wire.ask(DeleteAclsRequest([wanted]), 3)).filter_results
    assert result.error_code == ErrorCode.NONE


def error_codes(answer: Any) -> list[ErrorCode]:
    """Return every error code in a response, those of its rows included."""
    if isinstance(answer, list):
        return [code for each in answer for code in error_codes(each)]
    if not isinstance(answer, Structure):
        return []
    found = []
    for field in answer.__struct_fields__:
        value = getattr(answer, field)
        is_code = field in ("error_code", "partition_error_code")
        found += [ErrorCode(value)] if is_code else error_codes(value)
    return found

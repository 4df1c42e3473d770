"""AlterClientQuotas (49), versions 0–1: set and remove the quotas of users, client ids, addresses (KIP-546).

Each entity succeeds or fails as a whole (INVALID_REQUEST), independently of the others; an entity that the request
names twice has one row. With `validate_only` nothing changes. A change is in effect on this broker when the response is
sent, and on the others of its cluster a moment later.
`metadata.administration.client_quotas` has the rules. The versions differ in encoding only.
"""

from __future__ import annotations

from odradek.broker.metadata.administration.client_quotas import Alteration, alter_client_quotas
from odradek.broker.quotas.entities import Entity, entity_of
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)


async def handle(
    services: Services, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    time_slice = services.time_slices.begin(context.connection)
    alterations = await time_slice.map(_alteration, request.entries)
    outcomes = await alter_client_quotas(
        services.metadata, alterations, validate_only=request.validate_only, pause=time_slice.step
    )
    return AlterClientQuotasResponse(entries=await time_slice.map(_outcome, outcomes.items()))


def error_response(request: AlterClientQuotasRequest, code: ErrorCode, message: str) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[_row(_alteration(entry).entity, code, message or None) for entry in request.entries]
    )


def _alteration(entry: RequestEntryData) -> Alteration:
    entity = entity_of((part.entity_type, part.entity_name) for part in entry.entity)
    return Alteration(entity, [(op.key, None if op.remove else op.value) for op in entry.ops])


def _outcome(outcome: tuple[Entity, str | None]) -> ResponseEntryData:
    entity, problem = outcome
    return _row(entity, ErrorCode.NONE if problem is None else ErrorCode.INVALID_REQUEST, problem)


def _row(entity: Entity, code: ErrorCode, message: str | None) -> ResponseEntryData:
    return ResponseEntryData(code, message, [EntityData(*part) for part in entity])

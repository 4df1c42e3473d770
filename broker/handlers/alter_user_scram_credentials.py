"""AlterUserScramCredentials (51), version 0: set and delete credentials of SCRAM users (KIP-554).

Works without any SASL listener, so that users exist before it does. Each user succeeds or fails on its own:
DUPLICATE_RESOURCE (named twice), RESOURCE_NOT_FOUND (nothing to delete), UNSUPPORTED_SASL_MECHANISM,
UNACCEPTABLE_CREDENTIAL (iterations outside 4,096 to 16,384, an empty name).
"""

from __future__ import annotations

from odradek.broker.metadata.administration.scram_users import ScramAlterations
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


async def handle(
    services: Services, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    time_slice = services.time_slices.begin(context.connection)
    alterations = ScramAlterations(services.metadata)
    for deletion in request.deletions:
        await time_slice.step()
        alterations.delete(deletion.name, deletion.mechanism)
    for upsertion in request.upsertions:
        await time_slice.step()
        alterations.upsert(upsertion)
    outcomes = await alterations.commit()
    return AlterUserScramCredentialsResponse(results=await time_slice.map(_result, outcomes.items()))


def _result(outcome: tuple[str, KafkaError | None]) -> AlterUserScramCredentialsResult:
    name, error = outcome
    if error is None:
        return AlterUserScramCredentialsResult(name, ErrorCode.NONE, None)
    return AlterUserScramCredentialsResult(name, error.code, error.detail)


def error_response(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str
) -> AlterUserScramCredentialsResponse:
    names = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, code, message) for name in names]
    )

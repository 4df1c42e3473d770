"""DescribeUserScramCredentials (50), version 0: which SCRAM mechanisms and iterations users have (KIP-554).

Without names, or with none, all users are listed. A named user without credentials is RESOURCE_NOT_FOUND, one that is
named twice DUPLICATE_RESOURCE. Salts and keys are never returned.
"""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.scram_users import ScramUsers
from odradek.broker.request.context import RequestContext
from odradek.broker.request.services import Services
from odradek.broker.request.time_slices import Steps
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS


def handle(
    services: Services, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> Steps[DescribeUserScramCredentialsResponse]:
    users = services.metadata.image.scram_users
    named = Counter([user.name for user in request.users]) if request.users else dict.fromkeys(users.users, 1)
    rows = []
    for name, times in named.items():
        rows.append(_row(users, name, times))
        yield
    return DescribeUserScramCredentialsResponse(results=rows)


def error_response(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=message)


def _row(users: ScramUsers, name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, message, [])
    stored = users.users.get(name)
    if stored is None:
        message = f"Attempt to describe a user credential that does not exist: {name}"
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, message, [])
    credentials = stored.user.credentials
    infos = [
        CredentialInfo(mechanism.id, credentials[mechanism.name].iterations)
        for mechanism in SCRAM_MECHANISMS.values()
        if mechanism.name in credentials
    ]
    return DescribeUserScramCredentialsResult(name, credential_infos=infos)

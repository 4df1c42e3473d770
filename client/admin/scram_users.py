"""Users that authenticate by SCRAM: who there is, setting and deleting their credentials (KIP-554).

Passwords are salted and hashed here, so that a broker never sees them. Changes go to the controller.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from odradek.client.admin.calls import Calls, Outcomes
from odradek.client.admin.results import Results
from odradek.client.errors import ClientError, ConfigurationError, broker_error
from odradek.client.network.connection import Connection
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    UserName,
)
from odradek.protocol.sasl.scram import SCRAM_MECHANISMS, salted_password

DEFAULT_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 24
_NAMES: Final = {mechanism.id: name for name, mechanism in SCRAM_MECHANISMS.items()}


class ScramCredentialInfo(msgspec.Struct, frozen=True):
    """The public part of a credential: neither salt nor keys."""

    mechanism: str
    iterations: int


class ScramUpsertion(msgspec.Struct, frozen=True):
    """Set a user's password for SCRAM-SHA-256 or SCRAM-SHA-512. Brokers accept 4096 to 16384 iterations."""

    user: str
    password: str
    mechanism: str = "SCRAM-SHA-512"
    iterations: int = DEFAULT_ITERATIONS
    salt: bytes | None = None  # None: random

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.user!r}, [hidden], {self.mechanism!r}, {self.iterations})"


class ScramDeletion(msgspec.Struct, frozen=True):
    """Delete a user's credential for a mechanism."""

    user: str
    mechanism: str = "SCRAM-SHA-512"


Credentials = tuple[ScramCredentialInfo, ...]


async def describe_users(
    calls: Calls, users: Iterable[str] | None, *, timeout_ms: int | None
) -> Results[str, Credentials]:
    tried = "describe users"
    if users is not None:

        async def attempt(left: Sequence[str]) -> Outcomes[str, Credentials]:
            connection = await calls.cluster.any_connection()
            rows = await _describe(connection, [UserName(name) for name in left], tried)
            return {row.user: _credentials(row, tried, connection) for row in rows}

        return await calls.for_each(tried, users, attempt, timeout_ms)

    async def call(connection: Connection) -> Results[str, Credentials]:
        rows = await _describe(connection, None, tried)
        return Results({row.user: _credentials(row, tried, connection) for row in rows})

    return await calls.once(tried, call, timeout_ms)


async def alter_users(
    calls: Calls, changes: Iterable[ScramUpsertion | ScramDeletion], *, timeout_ms: int | None
) -> Results[str, None]:
    """One result for each user, whose changes are made one after the other.

    Kafka refuses two changes of a user in one request, also if they are of different mechanisms.
    """
    tried = "change a user"
    left_of_user: dict[str, list[ScramCredentialUpsertion | ScramCredentialDeletion]] = {}
    for change in changes:
        if change.mechanism not in SCRAM_MECHANISMS:
            cure = f"choose one of {', '.join(SCRAM_MECHANISMS)}"
            raise ConfigurationError(tried, f"the mechanism is {change.mechanism!r}", cure)
        left_of_user.setdefault(change.user, []).append(await _salted(change))

    async def attempt(users: Sequence[str]) -> Outcomes[str, None]:
        outcomes: dict[str, ClientError | None] = {}
        while going := [user for user in users if user not in outcomes]:
            connection = await calls.controller()
            firsts = [left_of_user[user][0] for user in going]
            request = AlterUserScramCredentialsRequest(
                [change for change in firsts if isinstance(change, ScramCredentialDeletion)],
                [change for change in firsts if isinstance(change, ScramCredentialUpsertion)],
            )
            response = await connection.send(request, AlterUserScramCredentialsResponse)
            answered = {row.user: row for row in response.results}
            for user in going:
                row = answered.get(user)
                if row is None:
                    outcomes[user] = ClientError(tried, f"the broker's response does not contain {user}")
                elif row.error_code:
                    where = f"{tried}, {user}"
                    outcomes[user] = broker_error(row.error_code, where, row.error_message, broker=connection.name)
                else:
                    del left_of_user[user][0]
                    if not left_of_user[user]:
                        outcomes[user] = None
        return outcomes

    return await calls.for_each(tried, left_of_user, attempt, timeout_ms)


async def _salted(change: ScramUpsertion | ScramDeletion) -> ScramCredentialUpsertion | ScramCredentialDeletion:
    mechanism = SCRAM_MECHANISMS[change.mechanism]
    if isinstance(change, ScramDeletion):
        return ScramCredentialDeletion(change.user, mechanism.id)
    salt = secrets.token_bytes(_SALT_BYTES) if change.salt is None else change.salt
    salted = b""
    if change.iterations > 0:  # otherwise the broker refuses it
        salted = await asyncio.to_thread(salted_password, mechanism, change.password, salt, change.iterations)
    return ScramCredentialUpsertion(change.user, mechanism.id, change.iterations, salt, salted)


async def _describe(
    connection: Connection, users: list[UserName] | None, tried: str
) -> list[DescribeUserScramCredentialsResult]:
    response = await connection.send(DescribeUserScramCredentialsRequest(users), DescribeUserScramCredentialsResponse)
    if response.error_code:
        raise broker_error(response.error_code, tried, response.error_message, broker=connection.name)
    return response.results


def _credentials(
    row: DescribeUserScramCredentialsResult, tried: str, connection: Connection
) -> Credentials | ClientError:
    if row.error_code:
        cure = "Check the user's name" if row.error_code == ErrorCode.RESOURCE_NOT_FOUND else None
        return broker_error(
            row.error_code, f"{tried}, {row.user}", row.error_message, cure=cure, broker=connection.name
        )
    return tuple(
        ScramCredentialInfo(_NAMES.get(info.mechanism, f"mechanism {info.mechanism}"), info.iterations)
        for info in row.credential_infos
    )

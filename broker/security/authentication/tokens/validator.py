"""The interface of token validators, a valid token, and how an invalid one is reported."""

from __future__ import annotations

from typing import Protocol

import msgspec

INVALID_TOKEN = "invalid_token"  # noqa: S105 - a status of RFC 6750, no secret
"""The token is expired, malformed, signed by an unknown key, or for somebody else."""
INSUFFICIENT_SCOPE = "insufficient_scope"
"""The token is valid, but does not have a scope that is demanded."""


class ValidToken(msgspec.Struct, frozen=True):
    """What a broker uses of a valid token. `expires_at_ms` is wall-clock time."""

    principal_name: str
    expires_at_ms: int
    scopes: frozenset[str] = frozenset()


class InvalidToken(Exception):  # noqa: N818 - the status that clients see
    """A token is not accepted.

    `status` and `scope` are for the client, `reason` for the log: it may have values of claims, never the token itself.
    """

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.scope = scope


class TokenValidator(Protocol):
    """Decides whether a token is valid."""

    async def validate(self, token: str) -> ValidToken:
        """Raises `InvalidToken`."""
        ...

    def claimed_name(self, token: str) -> str:
        """Return the name of the principal that a token claims, valid or not; empty if it has none."""
        ...

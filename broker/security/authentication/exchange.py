"""The server's side of one SASL exchange: its interface, and how it fails.

A connection creates an exchange (`mechanisms`), passes each token of the client to `step`, and sends the result. The
exchange is complete when `principal` is set. After `AuthenticationFailed` it is dead: every further step fails, so that
no client gets a second try on a connection.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, Protocol

from odradek.broker.security.principal import Principal

INVALID_CREDENTIALS: Final = "Authentication failed: Invalid username or password"
"""What Kafka tells clients of PLAIN: the same for an unknown user and a wrong password."""
OTHER_AUTHORIZATION_ID: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_LONGEST_QUOTE = 64


class AuthenticationFailed(Exception):  # noqa: N818 - the outcome of an exchange, and the name of it in Kafka's metrics
    """The client is not who it says it is, or its message is invalid.

    `message` is for the client and says nothing that it must not know. `reason` is for the log; it has no secrets, but
    may name the user. Neither may be shown in place of the other.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


class Exchange(Protocol):
    """One authentication of one client. Not reentrant: a step ends before the next begins."""

    def step(self, token: bytes) -> bytes | Awaitable[bytes]:
        """Return the server's next message, or an awaitable of it if it waits for keys.

        Both raise `AuthenticationFailed`, also for a step after the last one.
        """
        ...

    @property
    def user(self) -> str:
        """The name that the client claims, of any length and with any characters; empty before it has."""
        ...

    @property
    def principal(self) -> Principal | None:
        """The client, once the exchange is complete."""
        ...

    @property
    def expires_at_ms(self) -> int | None:
        """When the credential itself expires, in wall-clock milliseconds; None if it does not, or is not known yet."""
        ...


def invalid_credentials(mechanism: str) -> str:
    """Return what Kafka tells clients whose exchange fails without a message of its own (`SaslServerAuthenticator`)."""
    return f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism}"


def quoted(name: str) -> str:
    """Return a name that a client sent, for a log: escaped and of bounded length."""
    return repr(name) if len(name) <= _LONGEST_QUOTE else f"{name[:_LONGEST_QUOTE]!r}…"

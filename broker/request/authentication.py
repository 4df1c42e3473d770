"""The authentication of one connection: SASL, with Kafka's states (`SaslServerAuthenticator`).

```
                SaslHandshake                 tokens                      last token
START, NEGOTIATED ────────────► EXCHANGE ───────────────► EXCHANGE ───────────────────► DONE ─┐
  │ mechanism not enabled          │ authentication failed, another request               │   │ SaslHandshake:
  └────────────► FAILED ◄──────────┘                                                      │   │ authenticate again
                                    ▲                                                     ▼   │ (KIP-368)
                                    └────────────────────────────────────────────────── EXCHANGE
```

| state | requests that are answered |
|---|---|
| START | ApiVersions, SaslHandshake; any other closes the connection |
| NEGOTIATED | SaslHandshake: ApiVersions has been answered without an error; any other closes the connection |
| EXCHANGE | SaslAuthenticate; any other gets ILLEGAL_SASL_STATE, and the connection is closed |
| EXCHANGE after SaslHandshake 0 | none: each frame is a token of the mechanism |
| DONE | all, until the session expires; then only SaslHandshake |
| FAILED | none: the connection is closed after the answer |

`server.sasl_gate` lets requests pass by these states; the handlers of ApiVersions, SaslHandshake and SaslAuthenticate
change them. A client that authenticates again stays who it was, uses the same mechanism, and may do so once a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from odradek.broker import waiting
from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import ListenerMetrics
from odradek.broker.security.authentication.exchange import AuthenticationFailed, Exchange
from odradek.broker.security.authentication.mechanisms import Mechanisms
from odradek.broker.security.principal import ANONYMOUS, Principal

_SHORTEST_REPETITION_SECONDS: Final = 1.0
"""A client may not authenticate again earlier, as in Kafka (`MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS`)."""


class State(Enum):
    """The states in the module's table."""

    START = "start"
    NEGOTIATED = "negotiated"
    EXCHANGE = "exchange"
    DONE = "done"
    FAILED = "failed"


class ListenerAuthentication(msgspec.Struct, frozen=True):
    """How clients of one listener authenticate.

    `lifetimes_ms`: connections.max.reauth.ms by mechanism; 0 is no limit.
    """

    mechanisms: Mechanisms
    lifetimes_ms: Mapping[str, int]
    max_receive_size: int
    failure_delay_seconds: float
    is_encrypted: bool


class Authenticated(NamedTuple):
    """The answer to a token: the server's next one, and how long the session lasts; 0 before its end, or for ever."""

    token: bytes
    lifetime_ms: int


class ReauthenticationRefused(Exception):  # noqa: N818 - not an error of the broker
    """The connection is to be closed without an answer. The message is for the log."""


class Authentication:
    """The authentication of one connection. Used on the event loop only.

    `on_success` is called with the principal and the mechanism, each time the client has authenticated; `on_failure`
    with the mechanism, the name that the client claims ("" if it has named none), and a reason for the log.
    """

    def __init__(
        self,
        listener: ListenerAuthentication,
        clock: Clock,
        metrics: ListenerMetrics,
        on_success: Callable[[Principal, str], None],
        on_failure: Callable[[str, str, str], None],
    ) -> None:
        self.state = State.START
        self.takes_bare_tokens = False  # after SaslHandshake 0
        self.principal = ANONYMOUS
        self.mechanism = ""
        self.expires_at: float | None = None  # monotonic seconds
        self.on_first_success: Callable[[], None] = lambda: None
        self._listener = listener
        self._clock = clock
        self._metrics = metrics
        self._on_success = on_success
        self._on_failure = on_failure
        self._exchange: Exchange | None = None
        self._began_at = 0.0
        self._is_repeated = False

    @property
    def is_complete(self) -> bool:
        """Whether the client has authenticated once; it may be doing so again."""
        return self.principal is not ANONYMOUS

    @property
    def max_receive_size(self) -> int:
        """The largest frame before the client has authenticated."""
        return self._listener.max_receive_size

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self._listener.is_encrypted

    @property
    def mechanisms(self) -> list[str]:
        """The names of the mechanisms that are enabled."""
        return self._listener.mechanisms.names

    def versions_answered(self) -> None:
        """Record an answer to ApiVersions without an error: before it authenticates, a client gets one at most."""
        if self.state is State.START:
            self.state = State.NEGOTIATED

    def may_begin_again(self, now: float) -> bool:
        """Return whether an authenticated client may authenticate again at `now` (monotonic)."""
        return self.state is State.DONE and now >= self._began_at + _SHORTEST_REPETITION_SECONDS

    def has_expired(self, now: float) -> bool:
        """Return whether the session has expired at `now` (monotonic)."""
        return self.expires_at is not None and now >= self.expires_at

    def count_expired(self) -> None:
        """Count a connection that is closed because its session has expired."""
        self._metrics.expired_sessions += 1

    def begin(self, mechanism: str, *, takes_bare_tokens: bool) -> bool:
        """Begin an exchange; return False if the mechanism is not enabled, and the connection is to be closed.

        Raises `ReauthenticationRefused` for another mechanism than before.
        """
        if mechanism not in self._listener.mechanisms:
            self._fail(f"the mechanism {mechanism[:64]!r} is not enabled")
            return False
        self._is_repeated = self.is_complete
        if self._is_repeated and mechanism != self.mechanism:
            self._fail("another mechanism than before")
            raise ReauthenticationRefused("a client cannot change its mechanism")
        self._began_at = self._clock.monotonic()
        self._exchange = self._listener.mechanisms.exchange(mechanism)
        self.mechanism = mechanism
        self.takes_bare_tokens = takes_bare_tokens
        self.state = State.EXCHANGE
        return True

    def step(self, token: bytes) -> Authenticated | Coroutine[Any, Any, Authenticated]:
        """Handle a token. Return the answer, or a coroutine of it if the mechanism waits, or the client has failed.

        The coroutine raises `AuthenticationFailed` after the delay of failures; the connection is then closed.
        """
        exchange = self._exchange
        assert exchange is not None  # the state is EXCHANGE
        try:
            answer = exchange.step(token)
            if isinstance(answer, bytes):
                return self._authenticated(exchange, answer)
        except AuthenticationFailed as error:
            return self._refuse(error)
        return self._wait_for(exchange, answer)

    async def _wait_for(self, exchange: Exchange, answer: Awaitable[bytes]) -> Authenticated:
        try:
            return self._authenticated(exchange, await answer)
        except AuthenticationFailed as error:
            return await self._refuse(error)

    async def _refuse(self, error: AuthenticationFailed) -> NoReturn:
        self._fail(error.reason)
        await waiting.sleep(self._clock, self._listener.failure_delay_seconds)
        raise error

    def _authenticated(self, exchange: Exchange, answer: bytes) -> Authenticated:
        """Return the answer to a token. Raises `AuthenticationFailed` for a client that becomes another."""
        if exchange.principal is None:
            return Authenticated(answer, 0)
        return Authenticated(answer, self._complete(exchange.principal, exchange.expires_at_ms))

    def _complete(self, principal: Principal, credential_expires_at_ms: int | None) -> int:
        if self._is_repeated and principal != self.principal:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{self.principal.kind}.{self.principal.name}: {principal.kind}.{principal.name}",
                "another principal than before",
            )
        self.principal = principal
        self.state = State.DONE
        self.takes_bare_tokens = False
        self._exchange = None
        lifetime_ms = self._lifetime_ms(credential_expires_at_ms)
        self.expires_at = None if lifetime_ms is None else self._clock.monotonic() + lifetime_ms / 1000
        if self._is_repeated:
            self._metrics.reauthentications += 1
        else:
            self._metrics.authentications += 1
            self.on_first_success()
        self._on_success(principal, self.mechanism)
        return lifetime_ms or 0

    def _lifetime_ms(self, credential_expires_at_ms: int | None) -> int | None:
        """The smaller of the listener's limit and the rest of the credential's life; None: no limit."""
        limits = []
        if (limit := self._listener.lifetimes_ms.get(self.mechanism, 0)) > 0:
            limits.append(limit)
        if credential_expires_at_ms is not None:
            limits.append(max(0, credential_expires_at_ms - self._clock.time_ms()))
        return min(limits, default=None)

    def _fail(self, reason: str) -> None:
        user = "" if self._exchange is None else self._exchange.user
        self.state = State.FAILED
        self._exchange = None
        if self.is_complete:
            self._metrics.failed_reauthentications += 1
        else:
            self._metrics.failed_authentications += 1
        self._on_failure(self.mechanism, user, reason)

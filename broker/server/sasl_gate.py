"""The gate of a connection that must authenticate: a dispatcher that lets requests pass by the state of the client.

```
frame ─► gate ─┬─ the state allows the request ─────────────────► dispatcher ─► handler
               ├─ EXCHANGE after SaslHandshake 0: a bare token ──► authentication ─► bare token
               └─ otherwise: closed, with ILLEGAL_SASL_STATE if the client has begun to authenticate
```

`request.authentication` has the states. Only connections of listeners with SASL have a gate.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Final

from odradek.broker.request.authentication import Authenticated, Authentication, State
from odradek.broker.request.context import CloseConnection, ConnectionContext, RequestContext
from odradek.broker.security.authentication.exchange import AuthenticationFailed
from odradek.broker.server.dispatch import Dispatcher
from odradek.broker.server.routes import API_VERSIONS, Answers, Pending
from odradek.protocol.errors import ErrorCode, RemoteProtocolError
from odradek.protocol.framing import SIZE_PREFIX

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
_API_KEY: Final = struct.Struct(">h")


class SaslGate:
    """The dispatcher of one connection; its methods are those of `Dispatcher`."""

    def __init__(self, dispatcher: Dispatcher, authentication: Authentication) -> None:
        self._dispatcher = dispatcher
        self._authentication = authentication

    def check_size(self, api_key: int, size: int) -> None:
        """Raise RemoteProtocolError if a frame of `size` bytes is too large, in its API or for an unknown client."""
        authentication = self._authentication
        if not authentication.is_complete and size > authentication.max_receive_size:
            raise RemoteProtocolError(
                f"a request of {size} bytes before authentication is over"
                f" sasl.server.max.receive.size={authentication.max_receive_size}"
            )
        if authentication.is_complete:
            self._dispatcher.check_size(api_key, size)

    def dispatch(self, frame: memoryview, connection: ConnectionContext, answers: Answers) -> Pending | None:
        """Answer the request in `frame`, or return it as a Pending. Raises as `Dispatcher.dispatch`."""
        authentication = self._authentication
        state = authentication.state
        if state is State.DONE:
            self._check_session(frame, answers.now)
            return self._dispatcher.dispatch(frame, connection, answers)
        if not authentication.is_complete:
            self.check_size(-1, len(frame))
        if state is State.EXCHANGE and authentication.takes_bare_tokens:
            return self._take_bare_token(bytes(frame), connection, answers)
        api_key = _api_key(frame)
        if state is State.EXCHANGE:
            if api_key != SASL_AUTHENTICATE:
                self._dispatcher.refuse(frame, connection, answers, ErrorCode.ILLEGAL_SASL_STATE)
                raise CloseConnection("a request other than SaslAuthenticate during authentication")
        elif api_key != SASL_HANDSHAKE and (api_key != API_VERSIONS or state is not State.START):
            raise CloseConnection("a request before authentication")
        pending = self._dispatcher.dispatch(frame, connection, answers)
        if pending is None:
            self._close_after_failure()
        return pending

    def finish(self, pending: Pending, answers: Answers) -> Pending | None:
        """Answer a pending request whose future is done. Raises RemoteProtocolError or CloseConnection."""
        if isinstance(pending, _BareToken):
            _finish_bare_token(pending, answers)
            return None
        more = self._dispatcher.finish(pending, answers)
        if more is None:
            self._close_after_failure()
        return more

    def discard(self, pending: Pending) -> None:
        """Release the response to a pending request whose connection is closed."""
        if isinstance(pending, _BareToken):
            if not pending.future.cancelled():
                pending.future.exception()
        else:
            self._dispatcher.discard(pending)

    def _check_session(self, frame: memoryview, now: float) -> None:
        authentication = self._authentication
        if _api_key(frame) == SASL_HANDSHAKE and authentication.may_begin_again(now):
            return
        if authentication.has_expired(now):
            authentication.count_expired()
            raise CloseConnection("its session has expired, and it has not authenticated again")

    def _close_after_failure(self) -> None:
        if self._authentication.state is State.FAILED:
            raise CloseConnection("authentication failed")

    def _take_bare_token(self, token: bytes, connection: ConnectionContext, answers: Answers) -> Pending | None:
        route = self._dispatcher.route(SASL_AUTHENTICATE, 0)
        metrics, now = route.metrics(None), answers.now
        answer = self._authentication.step(token)
        if isinstance(answer, Authenticated):
            _append_bare_token(answer, answers)
            answers.answered.append((metrics, answers.received_at, now, now, now))
            return None
        context = RequestContext(SASL_AUTHENTICATE, 0, 0, None, answers.received_at, connection)
        return _BareToken(route, metrics, context, None, asyncio.ensure_future(answer), now, now)


class _BareToken(Pending):
    """A token without a request around it, as clients send it after SaslHandshake 0."""

    __slots__ = ()


def gated(dispatcher: Dispatcher, context: ConnectionContext) -> Dispatcher | SaslGate:
    """Return the dispatcher for a connection: with a gate if its client must authenticate."""
    return dispatcher if context.authentication is None else SaslGate(dispatcher, context.authentication)


def _finish_bare_token(pending: Pending, answers: Answers) -> None:
    """Append the server's token. Raises CloseConnection: there is no answer to a failure but the end."""
    try:
        answer: Authenticated = pending.future.result()
    except asyncio.CancelledError:
        raise CloseConnection("the request was cancelled") from None
    except AuthenticationFailed:
        raise CloseConnection("authentication failed") from None
    _append_bare_token(answer, answers)
    times = (pending.context.received_at, pending.started, pending.handled, answers.now)
    answers.answered.append((pending.metrics, *times))


def _append_bare_token(answer: Authenticated, answers: Answers) -> None:
    answers.out += SIZE_PREFIX.pack(len(answer.token)) + answer.token


def _api_key(frame: memoryview) -> int:
    """Return the API key of a frame. Raises RemoteProtocolError."""
    if len(frame) < _API_KEY.size:
        raise RemoteProtocolError("a frame is shorter than the header of a request")
    key: int = _API_KEY.unpack_from(frame)[0]
    return key

"""From the bytes of one request to the bytes of its response, through the handler of its API.

```
frame ─► header ─► route (api key, version) ─► body ─► handler ─┬─ message ──────────► Answers, at once
                     │ none: close               │ malformed:   ├─ None ─────────────► nothing (Produce with acks=0)
                     └ ApiVersions: v0, error 35 │ close        ├─ awaitable ─► Pending ─► the same, later
                                                                └─ exception ─► the API's error response
```

What goes wrong, and who notices:
- RemoteProtocolError (not a request, an API or version that is not served): raised, the connection is closed. The
  exception is ApiVersions of an unknown version: a client from the future is told in version 0 what it may ask
  (KIP-511).
- KafkaError out of a handler: the API's error response with that code.
- Any other exception out of a handler: logged with its traceback, counted, UNKNOWN_SERVER_ERROR.
- An API that cannot be told of an error (Produce with acks=0): `error_response` returns None, the connection is
  closed, as in Kafka.

A handler that answers at once costs no task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from broker.clock import Clock
from broker.event_log import EventLogger
from broker.metrics.metrics import ApiMetrics, Metrics
from broker.server.context import CloseConnection, ConnectionContext, RequestContext
from broker.server.flow_control import release_all
from broker.server.routes import API_VERSIONS, Answers, Handler, Pending, Result, Route
from protocol.codec import DECODING_ERRORS, ENCODING_ERRORS
from protocol.errors import ErrorCode, KafkaError, LocalProtocolError, RemoteProtocolError
from protocol.framing import SIZE_PREFIX
from protocol.header import LONGEST_REPEATED_HEADER, RepeatedHeader, encode_response, read_request_header
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.schema import Message

_LOG: Final = EventLogger(__name__)
_REQUEST_LOG: Final = EventLogger("broker.request")
_pack_size_into: Final = SIZE_PREFIX.pack_into
_EXPECTED: Final = (KafkaError, RemoteProtocolError, CloseConnection)
_LONGEST_LABEL: Final = 256  # characters of what a client says of its software: it is kept, and a label of a series
_UNKNOWN_VERSION: Final = -1  # one label for all versions that a peer may make up


class Dispatcher:
    """Answers requests of all connections of a broker with its handlers."""

    def __init__(self, handlers: Mapping[int, Handler], services: Any, metrics: Metrics, clock: Clock) -> None:
        self._services = services
        self._metrics = metrics
        self._monotonic = clock.monotonic
        self._handlers = handlers
        self._routes: dict[tuple[int, int], Route] = {}  # of what was asked for so far

    def dispatch(self, frame: memoryview, connection: ConnectionContext, answers: Answers) -> Pending | None:
        """Answer the request in `frame` into `answers`, or return what it waits for.

        Raises RemoteProtocolError or CloseConnection: `answers` then holds the responses before.
        """
        last = connection.last_header
        correlation_id = None if last is None else last.correlation_id_of(frame)
        if last is None or correlation_id is None:
            api_key, version, correlation_id, client_id, offset = read_request_header(frame)
            if offset <= LONGEST_REPEATED_HEADER:
                connection.last_header = RepeatedHeader(frame, api_key, version, client_id, offset)
        else:
            api_key, version, client_id, offset = last.api_key, last.api_version, last.client_id, last.offset
        route = self._routes.get((api_key, version)) or self._new_route(api_key, version)
        if route is None:
            self._answer_unknown_api_versions(correlation_id, answers)
            return None
        try:
            request = route.decode(frame, offset)[0]
        except DECODING_ERRORS as error:
            raise RemoteProtocolError(f"{route.request.__name__} version {version} is malformed: {error}") from error
        received_at = answers.received_at
        context = RequestContext(api_key, version, correlation_id, client_id, received_at, connection)
        metrics = route.metrics(request)
        metrics.versions[version] += 1
        started = answers.now
        result: Any
        try:
            result = route.handle(self._services, context, request)
        except Exception as error:  # noqa: BLE001 - the one place that turns exceptions into responses
            result = self._error_response(route, metrics, context, request, error)
        answers.now = handled = self._monotonic()
        if result is None or type(result) is route.response:
            self._respond(route, metrics, context, request, result, answers)
            answers.answered.append((metrics, received_at, started, handled, handled))
            if api_key == API_VERSIONS:
                self._note_software(connection, request, result)
            return None
        future: asyncio.Future[Result] = asyncio.ensure_future(result)
        self._metrics.requests_in_flight += 1
        return Pending(route, metrics, context, request, future, started, handled)

    def finish(self, pending: Pending, answers: Answers) -> None:
        """Answer a pending request whose future is done. Raises RemoteProtocolError or CloseConnection."""
        route, context, request = pending.route, pending.context, pending.request
        self._metrics.requests_in_flight -= 1
        try:
            result = pending.future.result()
        except asyncio.CancelledError:
            raise CloseConnection("the request was cancelled") from None
        except Exception as error:  # noqa: BLE001 - as in dispatch
            result = self._error_response(route, pending.metrics, context, request, error)
        self._respond(route, pending.metrics, context, request, result, answers)
        times = (context.received_at, pending.started, pending.handled, answers.now)
        answers.answered.append((pending.metrics, *times))

    def discard(self, pending: Pending) -> None:
        """Let go of what a pending request whose connection is closed was answered with."""
        self._metrics.requests_in_flight -= 1
        if pending.future.cancelled():
            return
        error = pending.future.exception()
        if error is not None:
            if not isinstance(error, _EXPECTED):
                self._note_unexpected(error, pending.metrics, pending.context)
            return
        answers = Answers(pending.started)
        response = pending.future.result()
        if response is not None:
            try:
                self._encode(pending.route, pending.context.correlation_id, response, answers)
            finally:
                release_all(answers.splices)

    def _note_software(self, connection: ConnectionContext, request: Any, response: Any) -> None:
        if request.client_software_name and not connection.client_software_name and not response.error_code:
            connection.client_software_name = request.client_software_name[:_LONGEST_LABEL]
            connection.client_software_version = request.client_software_version[:_LONGEST_LABEL]
            self._metrics.listener(connection.listener_name).software_opened(
                connection.client_software_name, connection.client_software_version
            )

    def _respond(
        self,
        route: Route,
        metrics: ApiMetrics,
        context: RequestContext,
        request: Message,
        response: Result,
        answers: Answers,
    ) -> None:
        if response is not None:
            try:
                self._encode(route, context.correlation_id, response, answers)
            except LocalProtocolError as error:
                response = self._error_response(route, metrics, context, request, error)
                assert response is not None
                self._encode(route, context.correlation_id, response, answers)
            route.count_errors(response, route.errors)
        if _REQUEST_LOG.enabled_for(logging.DEBUG):
            _log_request(metrics, context, answers.now)

    @staticmethod
    def _encode(route: Route, correlation_id: int, response: Message, answers: Answers) -> None:
        """Append a response with its size. Raises LocalProtocolError; `answers` is then as before."""
        out, splices = answers.out, answers.splices
        start, spliced = len(out), len(splices)
        out += route.pack_response_start(0, correlation_id)  # the size is known afterwards
        try:
            route.encode(response, out, splices)
        except ENCODING_ERRORS as error:
            release_all(splices[spliced:])
            del out[start:], splices[spliced:]
            raise LocalProtocolError(f"a response cannot carry one of its values: {error}") from error
        size = len(out) - start - 4
        if len(splices) > spliced:
            size += sum(len(of) for _, of in splices[spliced:])
        _pack_size_into(out, start, size)

    def _error_response(
        self, route: Route, metrics: ApiMetrics, context: RequestContext, request: Message, error: Exception
    ) -> Result:
        """What a client is told of an exception; raises instead if the connection is to be closed."""
        if isinstance(error, (RemoteProtocolError, CloseConnection)):
            raise error
        if isinstance(error, KafkaError):
            code, detail = error.code, error.detail
        else:
            code, detail = ErrorCode.UNKNOWN_SERVER_ERROR, ""
            self._note_unexpected(error, metrics, context)
        response = route.error_response(request, code, detail)
        if response is None:
            route.errors[code] += 1
            raise CloseConnection(f"{metrics.name} failed with {code.name} and its client waits for no answer")
        return response

    def _note_unexpected(self, error: BaseException, metrics: ApiMetrics, context: RequestContext) -> None:
        self._metrics.unexpected_errors += 1
        _LOG.exception("request failed", error, **_request_fields(metrics, context))

    def _new_route(self, api_key: int, version: int) -> Route | None:
        """The route of what is asked for the first time; None for ApiVersions of an unknown version.

        Raises RemoteProtocolError for everything else that is not served.
        """
        handler = self._handlers.get(api_key)
        if handler is None:
            raise RemoteProtocolError(f"API key {api_key} is not served")
        if handler.min_version <= version <= handler.max_version:
            route = self._routes[api_key, version] = Route(handler, version, self._metrics)
            return route
        if api_key == API_VERSIONS:
            return None
        raise RemoteProtocolError(
            f"{handler.api.name} version {version} is not served, only {handler.min_version} to {handler.max_version}"
        )

    def _answer_unknown_api_versions(self, correlation_id: int, answers: Answers) -> None:
        handler = self._handlers[API_VERSIONS]
        metrics = self._metrics.api(handler.api.name)
        metrics.versions[_UNKNOWN_VERSION] += 1
        metrics.errors[ErrorCode.UNSUPPORTED_VERSION] += 1
        served = ApiVersion(API_VERSIONS, handler.min_version, handler.max_version)
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[served])
        body = encode_response(API_VERSIONS, 0, correlation_id, response)
        answers.out += SIZE_PREFIX.pack(len(body))
        answers.out += body
        answers.answered.append((metrics, answers.received_at, answers.now, answers.now, answers.now))


def _request_fields(metrics: ApiMetrics, context: RequestContext) -> dict[str, Any]:
    return {
        "api": metrics.name,
        "version": context.api_version,
        "client_id": context.client_id,
        "peer": context.peer_address,
        "listener": context.listener_name,
        "correlation_id": context.correlation_id,
    }


def _log_request(metrics: ApiMetrics, context: RequestContext, now: float) -> None:
    _REQUEST_LOG.debug(
        "request answered", **_request_fields(metrics, context), ms=round((now - context.received_at) * 1000, 3)
    )

"""The dispatcher: from the bytes of a request to the bytes of its response, through the handler of its API.

```
frame ─► header ─► route (api key, version) ─► body ─► handler ─┬─ message ──────────► Answers, at once
                     │ none: close               │ malformed:   ├─ None ─────────────► nothing (Produce with acks=0)
                     └ ApiVersions: v0, error 35 │ close        ├─ awaitable ─► Pending ─► the same, later
                                                                └─ exception ─► the API's error response
```

| exception | result |
|---|---|
| RemoteProtocolError: no valid request, or an API or version that is not served | the connection is closed |
| ... ApiVersions of an unknown version | a response in version 0 with the served versions of ApiVersions (KIP-511) |
| KafkaError of a handler | the API's error response with its code |
| any other exception of a handler | logged with its traceback, counted, UNKNOWN_SERVER_ERROR |
| an error of an API without a response (Produce with acks=0) | the connection is closed, as in Kafka |

While a client has a quota (`throttling` is not None), each request is charged to its client before the response is
encoded; the connection reads the throttle time from its context.

A handler that answers at once needs no task. Long work runs in slices (`request.time_slices`), and each is a Pending of
its own: a large frame is decoded in steps; a handler may return steps instead of a response; and a response that came
from either, or from a coroutine, is encoded in steps, because it may be large.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import Any, Final, cast

from odradek.broker.clock import Clock
from odradek.broker.metrics.counts.metrics import ApiMetrics, Metrics
from odradek.broker.request.context import CloseConnection, ConnectionContext, RequestContext
from odradek.broker.request.handler import Handler, Result
from odradek.broker.request.throttling import Throttling
from odradek.broker.request.time_slices import ClientDisconnected, Steps, TimeSlices, is_steps
from odradek.broker.server.answer_memory import AnswerBuffer, AnswerMemory
from odradek.broker.server.flow_control import FileSlice, release_all
from odradek.broker.server.request_log import REQUEST_LOG, log_request, request_fields
from odradek.broker.server.routes import API_VERSIONS, Answers, Pending, Route, Routes, answer_size, as_refusal
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.codec import DECODING_ERRORS, ENCODING_ERRORS
from odradek.protocol.errors import ErrorCode, KafkaError, LocalProtocolError, RemoteProtocolError
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.header import LONGEST_REPEATED_HEADER, RepeatedHeader, encode_response, read_request_header
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from odradek.protocol.schema import Message

_LOG: Final = StructuredLogger(__name__)
_CLOSING: Final = (RemoteProtocolError, CloseConnection, ClientDisconnected)
_EXPECTED: Final = (KafkaError, *_CLOSING)
_LONGEST_LABEL: Final = 256  # characters of a client's software name: it is stored, and a label of a series
MAX_BYTES_PROPERTY: Final = "socket.request.without.records.max.bytes"
MAX_BYTES_WITHOUT_RECORDS: Final = 1_048_576
_LARGE_FRAME: Final = 64 * 1024
"""A request with more bytes is decoded in steps. A smaller one has at most 32,000 elements, some 10 ms."""
_UNKNOWN_VERSION: Final = -1  # one label for all unknown versions
_NOT_PENDING: Final[Any] = None  # the future of a request that has its result


class Dispatcher:
    """Answers the requests of all connections of a broker with its handlers."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        services: Any,
        metrics: Metrics,
        clock: Clock,
        time_slices: TimeSlices | None = None,
        max_bytes_without_records: int = MAX_BYTES_WITHOUT_RECORDS,
        answer_memory: AnswerMemory | None = None,
    ) -> None:
        self.answer_memory = answer_memory or AnswerMemory()
        self.time_slices = time_slices or TimeSlices(clock)
        self._max_bytes_without_records = max_bytes_without_records
        self._large = min(_LARGE_FRAME, max_bytes_without_records)
        self._services = services
        self._metrics = metrics
        self._monotonic = clock.monotonic
        self._handlers = handlers
        self.throttling: Throttling | None = None
        self.routes = Routes(handlers, metrics)
        self._routes = self.routes.by_version

    def dispatch(self, frame: memoryview, connection: ConnectionContext, answers: Answers) -> Pending | None:
        """Answer the request in `frame` into `answers`, or return it as a Pending.

        Raises RemoteProtocolError or CloseConnection; `answers` then has the earlier responses.
        """
        last = connection.last_header
        correlation_id = None if last is None else last.correlation_id_of(frame)
        if last is None or correlation_id is None:
            api_key, version, correlation_id, client_id, offset = read_request_header(frame)
            if offset <= LONGEST_REPEATED_HEADER:
                connection.last_header = RepeatedHeader(frame, api_key, version, client_id, offset)
        else:
            api_key, version, client_id, offset = last.api_key, last.api_version, last.client_id, last.offset
        route = self._routes.get((api_key, version)) or self.routes.create(api_key, version)
        if route is None:
            self._answer_unknown_api_versions(correlation_id, answers)
            return None
        received_at = answers.received_at
        context = RequestContext(api_key, version, correlation_id, client_id, received_at, connection, len(frame))
        try:
            if len(frame) > self._large:
                request, pending = self._begin_large(route, context, frame, offset, answers)
                if pending is not None:
                    return pending
            else:
                request = route.decode(frame, offset)[0]
        except DECODING_ERRORS as error:
            raise _malformed(route, version, error) from error
        metrics = route.metrics(request)
        metrics.versions[version] += 1
        started = answers.now
        result: Any
        in_slices = False
        try:
            result = route.handle(self._services, context, request)
            if result is not None and type(result) is not route.response and is_steps(result):
                result = self._begin(route, result, context)
                in_slices = not route.sends_file_slices
        except Exception as error:  # noqa: BLE001 - the one place that turns exceptions into responses
            result = self._error_response(route, metrics, context, request, error)
        answers.now = handled = self._monotonic()
        context.loop_seconds += handled - started
        if result is None or type(result) is route.response:
            is_encoded = in_slices and self.throttling is None and answers.encode_short(route, context, result)
            if in_slices and not is_encoded:
                pending = Pending(route, metrics, context, request, _NOT_PENDING, started, handled, True)
                return self._answer(pending, result, answers)
            self._respond(route, metrics, context, request, result, answers, is_encoded=is_encoded)
            answers.answered.append((metrics, received_at, started, handled, handled))
            if api_key == API_VERSIONS:
                self._record_software(connection, request, result)
            return None
        self._metrics.requests_in_flight += 1
        future, in_slices = self._future_of(route, result, context)
        return Pending(route, metrics, context, request, future, started, handled, in_slices)

    def refuse(self, frame: memoryview, connection: ConnectionContext, answers: Answers, code: ErrorCode) -> None:
        """Answer the request in `frame` with an error. Raises RemoteProtocolError or CloseConnection."""
        api_key, version, correlation_id, client_id, offset = read_request_header(frame)
        route = self.route(api_key, version)
        try:
            request = route.decode(frame, offset)[0]
        except DECODING_ERRORS as error:
            raise _malformed(route, version, error) from error
        context = RequestContext(api_key, version, correlation_id, client_id, answers.received_at, connection)
        metrics = route.metrics(request)
        response = self._error_response(route, metrics, context, request, KafkaError(code, ""))
        self._respond(route, metrics, context, request, response, answers)

    def route(self, api_key: int, version: int) -> Route:
        """Return the route of a version of an API. Raises RemoteProtocolError if it is not served."""
        route = self._routes.get((api_key, version)) or self.routes.create(api_key, version)
        if route is None:
            raise RemoteProtocolError(f"API key {api_key} version {version} is not served")
        return route

    def _future_of(self, route: Route, result: Any, context: RequestContext) -> tuple[asyncio.Future[Any], bool]:
        """Return the future of a response, and whether the response may be large."""
        if isinstance(result, asyncio.Future):
            return result, route.waits_for_others and not route.sends_file_slices  # a group's members may be many
        return self._task(result, context), not route.carries_records  # of a Produce it is short

    def _task(self, work: Any, context: RequestContext) -> Any:
        """Start the rest of a request as a task, whose time is measured if clients have quotas."""
        return asyncio.ensure_future(work if self.throttling is None else self.throttling.measure(work, context))

    def check_size(self, api_key: int, size: int) -> None:
        """Raise RemoteProtocolError if a frame of `size` bytes is too large for a request of this API."""
        if size <= self._max_bytes_without_records:
            return
        handler = self._handlers.get(api_key)
        if handler is None or not handler.row.carries_records:
            name = f"API key {api_key}" if handler is None else handler.api.name
            raise RemoteProtocolError(
                f"{name} of {size} bytes is over {MAX_BYTES_PROPERTY}={self._max_bytes_without_records}"
            )

    def finish(self, pending: Pending, answers: Answers) -> Pending | None:
        """Answer a pending request whose future is done, or return it if it must wait again.

        Raises RemoteProtocolError or CloseConnection.
        """
        route, context, request = pending.route, pending.context, pending.request
        self._metrics.requests_in_flight -= 1
        try:
            result = pending.future.result()
        except asyncio.CancelledError:
            raise CloseConnection("the request was cancelled") from None
        except Exception as error:  # noqa: BLE001 - as in dispatch
            pending.encoded = None
            result = self._error_response(route, pending.metrics, context, request, error)
            error.__traceback__ = None  # its frames refer to the request, and through the future to the error
        return self._answer(pending, result, answers)

    def _answer(self, pending: Pending, result: Any, answers: Answers) -> Pending | None:
        route, context, request = pending.route, pending.context, pending.request
        if pending.encoded is None and pending.in_slices and result is not None:
            self._charge(context, request, result)
            start = route.pack_response_start(0, context.correlation_id)
            pending.encoded = AnswerBuffer(self.answer_memory, context.connection, start), []
            encoding = self._encode_in_steps(pending, result, *pending.encoded)
            if self.time_slices.advance(encoding) is None:
                self._metrics.requests_in_flight += 1
                pending.future = self._task(self.time_slices.finish(encoding, context.connection), context)
                return pending
        if pending.encoded is not None:
            answers.append_encoded(*pending.encoded)
            self._charge_rest(context, request, answers)
        else:
            self._respond(route, pending.metrics, context, request, result, answers)
        times = (context.received_at, pending.started, pending.handled, answers.now)
        answers.answered.append((pending.metrics, *times))
        return None

    def discard(self, pending: Pending) -> None:
        """Release the response to a pending request whose connection is closed."""
        self._metrics.requests_in_flight -= 1
        if pending.future.cancelled():
            return
        error = pending.future.exception()
        if error is not None:
            if not isinstance(error, _EXPECTED):
                self._record_unexpected(error, pending.metrics, pending.context)
            return
        if pending.encoded is not None:
            release_all(pending.encoded[1])
        else:
            pending.route.release_slices(pending.future.result())

    def _begin(self, route: Route, steps: Steps[Result], context: RequestContext) -> Any:
        """Return the response if the steps end within a slice, else a coroutine of it."""
        ended = self.time_slices.advance(steps)
        return self._finish_handler(route, steps, context) if ended is None else ended[0]

    async def _finish_handler(self, route: Route, steps: Steps[Any], context: RequestContext) -> Result:
        result = await self.time_slices.finish(steps, _peer(route, context))
        return await result if isinstance(result, Awaitable) else cast("Result", result)

    def _begin_large(
        self, route: Route, context: RequestContext, frame: memoryview, offset: int, answers: Answers
    ) -> tuple[Any, Pending | None]:
        """Return a large request if it is decoded within a slice, else None and its Pending."""
        self.check_size(context.api_key, len(frame))
        decoding = route.decode_in_steps(frame, offset)
        ended = self.time_slices.advance(decoding)
        if ended is not None:
            return ended[0][0], None
        self._metrics.requests_in_flight += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        pending = Pending(route, route.metrics(None), context, None, future, answers.now, answers.now, True)
        context.loop_seconds = self._monotonic() - answers.now
        pending.future = self._task(self._decode_and_handle(pending, decoding), context)
        return None, pending

    async def _decode_and_handle(self, pending: Pending, decoding: Steps[tuple[Any, int]]) -> Result:
        route, context = pending.route, pending.context
        version, peer = context.api_version, _peer(route, context)
        try:
            request = (await self.time_slices.finish(decoding, peer))[0]
        except DECODING_ERRORS as error:
            raise _malformed(route, version, error) from error
        pending.request = request
        pending.metrics = metrics = route.metrics(request)
        metrics.versions[version] += 1
        pending.started = self._monotonic()
        result: Any = route.handle(self._services, context, request)
        if is_steps(result):
            result = await self.time_slices.finish(result, peer)
        if result is not None and type(result) is not route.response:
            result = await result
        pending.handled = self._monotonic()
        return cast("Result", result)

    def _encode_in_steps(
        self, pending: Pending, response: Message, out: AnswerBuffer, splices: list[tuple[int, FileSlice]]
    ) -> Steps[None]:
        """Append a response to `out`, which has its header. An error response replaces one that cannot be sent."""
        route, memory, start = pending.route, self.answer_memory, len(out)
        is_bounded = not route.sends_file_slices  # fetch.max.bytes limits those
        refusal: Result = None
        try:
            for _ in route.encode_in_steps(response, out, splices):
                memory.grow(out, is_bounded=is_bounded)
                yield
            memory.grow(out, is_bounded=is_bounded)
            memory.check_size(answer_size(out, splices), is_bounded=is_bounded)
        except (KafkaError, *ENCODING_ERRORS) as error:
            route.release_slices(response)
            del out[start:], splices[:]
            refusal = self._error_response(route, pending.metrics, pending.context, pending.request, as_refusal(error))
            assert refusal is not None
        except BaseException:  # it will not be sent
            route.release_slices(response)
            raise
        if refusal is not None:
            response = refusal
            yield from route.encode_in_steps(response, out, splices)
            memory.count(out)
        route.count_errors(response, route.errors)
        if REQUEST_LOG.enabled_for(logging.DEBUG):
            log_request(pending.metrics, pending.context, self._monotonic())

    def _record_software(self, connection: ConnectionContext, request: Any, response: Any) -> None:
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
        request: Message | None,
        response: Result,
        answers: Answers,
        *,
        is_encoded: bool = False,
    ) -> None:
        if self.throttling is not None:
            self._charge(context, request, response)
        if response is not None:
            try:
                if not is_encoded:
                    is_bounded = not route.sends_file_slices
                    answers.encode(route, context, response, self.answer_memory, is_bounded=is_bounded)
            except (KafkaError, LocalProtocolError) as error:
                response = self._error_response(route, metrics, context, request, error)
                assert response is not None
                answers.encode(route, context, response, self.answer_memory, is_bounded=False)
            route.count_errors(response, route.errors)
        if self.throttling is not None:
            self._charge_rest(context, request, answers)
        if REQUEST_LOG.enabled_for(logging.DEBUG):
            log_request(metrics, context, answers.now)

    def _charge(self, context: RequestContext, request: Message | None, response: Result) -> None:
        """Charge the client with a request whose response is about to be encoded."""
        if self.throttling is not None:
            self.throttling.charge(context, request, response, context.loop_seconds)
            context.loop_seconds = 0.0

    def _charge_rest(self, context: RequestContext, request: Message | None, answers: Answers) -> None:
        """Charge the client with the time since `_charge`."""
        if self.throttling is not None:
            now = self._monotonic()
            self.throttling.charge_time(context, request, context.loop_seconds + now - answers.now)
            answers.now = now

    def _error_response(
        self, route: Route, metrics: ApiMetrics, context: RequestContext, request: Message | None, error: Exception
    ) -> Result:
        """Return the response for an exception, or raise if the connection must be closed."""
        if isinstance(error, _CLOSING):
            raise error
        if isinstance(error, KafkaError):
            code, detail = error.code, error.detail
        else:
            code, detail = ErrorCode.UNKNOWN_SERVER_ERROR, ""
            self._record_unexpected(error, metrics, context)
        response = route.error_response(request, code, detail)
        if response is None:
            route.errors[code] += 1
            raise CloseConnection(f"{metrics.name} failed with {code.name} and its client waits for no response")
        return response

    def _record_unexpected(self, error: BaseException, metrics: ApiMetrics, context: RequestContext) -> None:
        self._metrics.unexpected_errors += 1
        _LOG.exception("request failed", error, **request_fields(metrics, context))

    def _answer_unknown_api_versions(self, correlation_id: int, answers: Answers) -> None:
        handler = self._handlers[API_VERSIONS]
        metrics = self._metrics.api(handler.api.name)
        metrics.versions[_UNKNOWN_VERSION] += 1
        metrics.errors[ErrorCode.UNSUPPORTED_VERSION] += 1
        served = ApiVersion(API_VERSIONS, handler.row.min_version, handler.row.max_version)
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[served])
        body = encode_response(API_VERSIONS, 0, correlation_id, response)
        answers.out += SIZE_PREFIX.pack(len(body))
        answers.out += body
        answers.answered.append((metrics, answers.received_at, answers.now, answers.now, answers.now))


def _peer(route: Route, context: RequestContext) -> ConnectionContext | None:
    """The peer whose disconnect ends a long request. None for records: a producer may send them and disconnect."""
    return None if route.carries_records else context.connection


def _malformed(route: Route, version: int, error: Exception) -> RemoteProtocolError:
    return RemoteProtocolError(f"{route.request.__name__} version {version} is malformed: {error}")

"""The routes of requests, one for each served version of an API, and the state of a request in progress."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from odradek.broker.metrics.counts.metrics import ApiMetrics, Metrics
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handle, Handler, Interceptor, Result
from odradek.broker.request.time_slices import Steps
from odradek.broker.server.answer_memory import SMALL, AnswerBuffer, AnswerMemory
from odradek.broker.server.flow_control import FileSlice, release_all
from odradek.protocol.code_generation.error_counts import error_counter
from odradek.protocol.codec import (
    ENCODING_ERRORS,
    DecoderInSteps,
    EncoderInSteps,
    decoder,
    decoder_in_steps,
    encoder,
    encoder_in_steps,
)
from odradek.protocol.errors import KafkaError, LocalProtocolError, RemoteProtocolError
from odradek.protocol.framing import SIZE_PREFIX, FrameReader
from odradek.protocol.header import response_start_packer
from odradek.protocol.schema import Message

_pack_size_into: Final = SIZE_PREFIX.pack_into
FETCH: Final = 1
API_VERSIONS: Final = 18
WAITING_LIMIT: Final = 64 * 1024
"""Received bytes that may wait behind a long poll; up to that, reading continues, to detect a disconnect."""
AHEAD_LIMIT: Final = 1024 * 1024
"""Received bytes that may wait behind any other request, which ends soon."""


class Route:
    """A version of an API: its codec, its handler, and the traits in its row."""

    __slots__ = (
        "_decode_in_steps",
        "_encode_in_steps",
        "_follower_metrics",
        "_metrics",
        "_version",
        "carries_records",
        "count_errors",
        "decode",
        "encode",
        "error_response",
        "errors",
        "handle",
        "pack_response_start",
        "request",
        "response",
        "sends_file_slices",
        "waits_for_others",
    )

    def __init__(self, handler: Handler, version: int, metrics: Metrics) -> None:
        api = handler.api
        self.decode = decoder(api.request, version)  # looked up once: 0.8 µs of a small Produce
        self.encode = encoder(api.response, version)
        self._decode_in_steps: DecoderInSteps | None = None  # generated for the first large message
        self._encode_in_steps: EncoderInSteps | None = None
        self._version = version
        self.pack_response_start = response_start_packer(api.key, version)
        self.request = api.request
        self.response = api.response
        self.handle = handler.handle
        self.error_response = handler.error_response
        self.count_errors = error_counter(api.response, version)
        # For Fetch, too: Kafka counts the errors of followers and consumers together.
        self.errors = metrics.api(api.name).errors
        self.sends_file_slices = handler.row.sends_file_slices
        self.waits_for_others = handler.row.waits_for_others
        self.carries_records = handler.row.carries_records
        self._metrics = metrics.api("FetchConsumer" if api.key == FETCH else api.name)
        self._follower_metrics = metrics.api("FetchFollower") if api.key == FETCH else None

    def decode_in_steps(self, frame: memoryview, offset: int) -> Steps[tuple[Any, int]]:
        """Return steps that decode a large request. They raise DECODING_ERRORS."""
        if self._decode_in_steps is None:
            self._decode_in_steps = decoder_in_steps(self.request, self._version)
        return self._decode_in_steps(frame, offset)

    def encode_in_steps(self, response: Message, out: bytearray, splices: list[tuple[int, FileSlice]]) -> Steps[None]:
        """Return steps that append a large response to `out`. They raise ENCODING_ERRORS."""
        if self._encode_in_steps is None:
            self._encode_in_steps = encoder_in_steps(self.response, self._version)
        return self._encode_in_steps(response, out, splices)

    def release_slices(self, response: Result) -> None:
        """Release the file slices of a response that will not be sent."""
        splices: list[tuple[int, FileSlice]] = []
        try:
            if response is not None and self.sends_file_slices:
                self.encode(response, bytearray(), splices)
        except ENCODING_ERRORS:
            pass  # the slices behind the invalid value are not found
        finally:
            release_all(splices)

    def metrics(self, request: Any) -> ApiMetrics:
        """The metrics that count a request. Kafka counts the fetches of followers and of consumers separately.

        A request that is not decoded yet (None) counts as a consumer's.
        """
        if request is None:
            return self._metrics
        if self._follower_metrics is not None and (request.replica_id >= 0 or request.replica_state.replica_id >= 0):
            return self._follower_metrics
        return self._metrics


class Routes:
    """The routes of a broker, `by_version`, each created by its first request, and what intercepts their requests."""

    def __init__(self, handlers: Mapping[int, Handler], metrics: Metrics) -> None:
        self.by_version: dict[tuple[int, int], Route] = {}
        self._handlers = handlers
        self._metrics = metrics
        self._interceptors: list[Interceptor] = []  # the innermost first

    def create(self, api_key: int, version: int) -> Route | None:
        """Create the route of a version of an API; return None for ApiVersions of an unknown version.

        Raises RemoteProtocolError for any other API or version that is not served.
        """
        handler = self._handlers.get(api_key)
        if handler is None:
            raise RemoteProtocolError(f"API key {api_key} is not served")
        row = handler.row
        if row.min_version <= version <= row.max_version:
            route = self.by_version[api_key, version] = Route(handler, version, self._metrics)
            route.handle = self._intercepted(handler)
            return route
        if api_key == API_VERSIONS:
            return None
        raise RemoteProtocolError(
            f"{handler.api.name} version {version} is not served, only {row.min_version} to {row.max_version}"
        )

    def add_interceptor(self, interceptor: Interceptor, *, outermost: bool = False) -> None:
        """Pass the requests of all APIs through `interceptor` from now on, the innermost or the outermost of all.

        Without interceptors the handlers are called directly, so they cost nothing.
        """
        self._interceptors.insert(len(self._interceptors) if outermost else 0, interceptor)
        self._set_handles()

    def remove_interceptor(self, interceptor: Interceptor) -> None:
        """Pass no more requests through `interceptor`. Raises ValueError if it was not added."""
        self._interceptors.remove(interceptor)
        self._set_handles()

    def _set_handles(self) -> None:
        for (api_key, _), route in self.by_version.items():
            route.handle = self._intercepted(self._handlers[api_key])

    def _intercepted(self, handler: Handler) -> Handle:
        for interceptor in self._interceptors:
            handler = handler._replace(handle=interceptor(handler))
        return handler.handle


Encoded = tuple[AnswerBuffer, list[tuple[int, FileSlice]]]
"""The bytes of a response with its size, and the file slices to insert."""


class Pending:
    """A request that waits for `future`, the future of its response. `started` and `handled` are monotonic times.

    `request` is None while a large request is being decoded. If the response may be large, `in_slices` is true: it is
    encoded in slices, and `encoded` has its bytes so far.
    """

    __slots__ = (
        "context",
        "encoded",
        "future",
        "handled",
        "in_slices",
        "metrics",
        "request",
        "route",
        "started",
        "views_frame",
    )

    def __init__(
        self,
        route: Route,
        metrics: ApiMetrics,
        context: RequestContext,
        request: Message | None,
        future: asyncio.Future[Any],
        started: float,
        handled: float,
        in_slices: bool = False,
    ) -> None:
        self.route = route
        self.metrics = metrics
        self.context = context
        self.request = request
        self.future = future
        self.started = started
        self.handled = handled
        self.in_slices = in_slices
        self.views_frame = request is None or route.carries_records
        self.encoded: Encoded | None = None

    def has_received_enough(self, reader: FrameReader) -> bool:
        """Return whether its connection need not receive more until this request is answered."""
        if self.route.waits_for_others:
            return reader.buffered > WAITING_LIMIT
        return reader.has_frame() or reader.buffered > AHEAD_LIMIT


Answered = tuple[ApiMetrics, float, float, float, float]
"""The metrics of a request, and its times: received, started, handled, ready. See `ApiMetrics.record`."""


class Answers:
    """The responses of one turn of one connection: `out`, with `splices` inserted.

    All times are monotonic seconds: `received_at` of the requests of this turn, `now` of the last event. `answered` has
    the requests whose metrics are recorded when the responses are sent.
    """

    __slots__ = ("answered", "now", "out", "received_at", "splices")

    def __init__(self, received_at: float) -> None:
        self.received_at = received_at
        self.now = received_at
        self.out = bytearray()
        self.splices: list[tuple[int, FileSlice]] = []
        self.answered: list[Answered] = []

    def encode(
        self, route: Route, context: RequestContext, response: Message, memory: AnswerMemory, *, is_bounded: bool
    ) -> None:
        """Append a response with its size. Raises KafkaError or LocalProtocolError; this object is then unchanged."""
        out, splices = self.out, self.splices
        start, spliced = len(out), len(splices)
        out += route.pack_response_start(0, context.correlation_id)  # the size is written afterwards
        try:
            route.encode(response, out, splices)
            size = answer_size(out, splices, start, spliced)
            memory.check_size(size, is_bounded=is_bounded)
            _pack_size_into(out, start, size)
        except (KafkaError, *ENCODING_ERRORS) as error:
            release_all(splices[spliced:])
            del out[start:], splices[spliced:]
            raise as_refusal(error) from error
        if len(out) > SMALL:
            self.out = memory.adopt(out, context.connection)

    def encode_short(self, route: Route, context: RequestContext, response: Result) -> bool:
        """Append a response without slices if it has at most a few KiB. Returns false if it is longer, or invalid."""
        if response is None:
            return False
        out = self.out
        start = len(out)
        out += route.pack_response_start(0, context.correlation_id)
        try:
            next(route.encode_in_steps(response, out, []))
        except StopIteration:
            _pack_size_into(out, start, answer_size(out, [], start))
            return True
        except ENCODING_ERRORS:
            pass
        del out[start:]
        return False

    def append_encoded(self, out: AnswerBuffer, splices: list[tuple[int, FileSlice]]) -> None:
        """Append an encoded response, which belongs to this object from now on; write its size into its first bytes."""
        _pack_size_into(out, 0, answer_size(out, splices))
        start = len(self.out)
        if start:
            out[:0] = self.out
        self.out = out  # not copied: its lifetime is counted
        self.splices += [(start + position, of) for position, of in splices]

    def clear(self) -> None:
        """Start with no responses again, after the outbox has taken those so far."""
        self.out = bytearray()
        self.splices = []
        self.answered = []


def answer_size(out: bytearray, splices: list[tuple[int, FileSlice]], start: int = 0, spliced: int = 0) -> int:
    """The size of the encoded response that begins at `start` and at the slice `spliced`, without its prefix."""
    size = len(out) - start - SIZE_PREFIX.size
    return size + sum([len(of) for _, of in splices[spliced:]]) if len(splices) > spliced else size


def as_refusal(error: Exception) -> KafkaError | LocalProtocolError:
    """Return the error of a response that is too large, or that its version cannot encode."""
    if isinstance(error, KafkaError):
        return error
    return LocalProtocolError(f"a response cannot carry one of its values: {error}")

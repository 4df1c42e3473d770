"""Where requests go: a route for each version of an API that is served, and the request that is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from odradek.broker.metrics.counts.metrics import ApiMetrics, Metrics
from odradek.broker.request.context import RequestContext
from odradek.broker.request.time_slices import Steps
from odradek.broker.server.flow_control import FileSlice
from odradek.protocol.api import Api
from odradek.protocol.codec import (
    DecoderInSteps,
    EncoderInSteps,
    decoder,
    decoder_in_steps,
    encoder,
    encoder_in_steps,
)
from odradek.protocol.error_counts import error_counter
from odradek.protocol.errors import ErrorCode
from odradek.protocol.header import response_start_packer
from odradek.protocol.schema import Message

PRODUCE: Final = 0
FETCH: Final = 1
API_VERSIONS: Final = 18
# What waits for others to do something, for minutes perhaps: Fetch, JoinGroup, SyncGroup, ShareFetch. It is given up
# when its client goes. Everything else that has begun ends by itself soon, and is let end: a half-done request helps
# nobody.
_LONG_POLLS: Final = frozenset({FETCH, 11, 14, 78})

Result = Message | None
"""A response; None for a request that gets none."""


class Handler(Protocol):
    """One API as the table of handlers declares it. Versions are inclusive."""

    @property
    def api(self) -> Api: ...
    @property
    def min_version(self) -> int: ...
    @property
    def max_version(self) -> int: ...
    @property
    def handle(self) -> Callable[[Any, RequestContext, Any], Result | Awaitable[Result] | Steps[Any]]: ...
    @property
    def error_response(self) -> Callable[[Any, ErrorCode, str], Result]: ...


class Route:
    """A version of an API and who answers it."""

    __slots__ = (
        "_decode_in_steps",
        "_encode_in_steps",
        "_follower_metrics",
        "_metrics",
        "_version",
        "count_errors",
        "decode",
        "encode",
        "error_response",
        "errors",
        "handle",
        "has_slices",
        "is_long_poll",
        "pack_response_start",
        "request",
        "response",
        "views_frame",
    )

    def __init__(self, handler: Handler, version: int, metrics: Metrics) -> None:
        api = handler.api
        self.decode = decoder(api.request, version)  # these three are looked up once: 0.8 µs of a small Produce
        self.encode = encoder(api.response, version)
        self._decode_in_steps: DecoderInSteps | None = None  # written for the first large message
        self._encode_in_steps: EncoderInSteps | None = None
        self._version = version
        self.pack_response_start = response_start_packer(api.key, version)
        self.request = api.request
        self.response = api.response
        self.handle = handler.handle
        self.error_response = handler.error_response
        self.count_errors = error_counter(api.response, version)
        self.errors = metrics.api(api.name).errors  # of a Fetch as well: Kafka does not tell them by who fetches
        self.has_slices = api.key == FETCH  # its records may be file slices, which must be released
        self.is_long_poll = api.key in _LONG_POLLS
        # Whether a request refers to the bytes of its frame: records do, everything else is copied.
        self.views_frame = api.key == PRODUCE
        self._metrics = metrics.api("FetchConsumer" if api.key == FETCH else api.name)
        self._follower_metrics = metrics.api("FetchFollower") if api.key == FETCH else None

    def decode_in_steps(self, frame: memoryview, offset: int) -> Steps[tuple[Any, int]]:
        """Decode a large request: steps that raise DECODING_ERRORS."""
        if self._decode_in_steps is None:
            self._decode_in_steps = decoder_in_steps(self.request, self._version)
        return self._decode_in_steps(frame, offset)

    def encode_in_steps(self, response: Message, out: bytearray, splices: list[tuple[int, FileSlice]]) -> Steps[None]:
        """Append a large response to `out`: steps that raise ENCODING_ERRORS."""
        if self._encode_in_steps is None:
            self._encode_in_steps = encoder_in_steps(self.response, self._version)
        return self._encode_in_steps(response, out, splices)

    def metrics(self, request: Any) -> ApiMetrics:
        """The metrics that count a request; Kafka tells the fetches of followers from those of consumers.

        A request that is not decoded yet, None, counts as a consumer's.
        """
        if request is None:
            return self._metrics
        if self._follower_metrics is not None and (request.replica_id >= 0 or request.replica_state.replica_id >= 0):
            return self._follower_metrics
        return self._metrics


Encoded = tuple[bytearray, list[tuple[int, FileSlice]]]
"""The bytes of a response with its size, and the file slices that belong between them."""


class Pending:
    """A request that waits for `future`, of its answer. When it began and its handler returned is monotonic.

    `request` is None as long as a large request is being decoded. `in_slices`: the answer may be large, so that it is
    encoded in slices; `encoded` is then what there is of its bytes.
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
        self.views_frame = request is None or route.views_frame
        self.encoded: Encoded | None = None


Answered = tuple[ApiMetrics, float, float, float, float]
"""The metrics of a request, and when it was received, started, handled and ready; `ApiMetrics.record` wants them."""


class Answers:
    """The responses of one turn of one connection, as they will be sent: `out`, with `splices` inserted.

    All times are monotonic seconds: `received_at` of what is executed in this turn, `now` of the last thing that
    happened. `answered` are the requests to be recorded when the responses are out.
    """

    __slots__ = ("answered", "now", "out", "received_at", "splices")

    def __init__(self, received_at: float) -> None:
        self.received_at = received_at
        self.now = received_at
        self.out = bytearray()
        self.splices: list[tuple[int, FileSlice]] = []
        self.answered: list[Answered] = []

    def start_over(self) -> None:
        """The responses so far have been handed over."""
        self.out = bytearray()
        self.splices = []
        self.answered = []

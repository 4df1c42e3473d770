"""Where requests go: a route for each version of an API that is served, and the request that is on its way."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from odradek.broker.metrics.counts.metrics import ApiMetrics, Metrics
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Handler
from odradek.broker.request.time_slices import Steps
from odradek.broker.server.flow_control import FileSlice
from odradek.protocol.codec import (
    DecoderInSteps,
    EncoderInSteps,
    decoder,
    decoder_in_steps,
    encoder,
    encoder_in_steps,
)
from odradek.protocol.error_counts import error_counter
from odradek.protocol.header import response_start_packer
from odradek.protocol.schema import Message

FETCH: Final = 1
API_VERSIONS: Final = 18


class Route:
    """A version of an API and who answers it."""

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
        self.sends_file_slices = handler.row.sends_file_slices
        self.waits_for_others = handler.row.waits_for_others
        self.carries_records = handler.row.carries_records
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
        self.views_frame = request is None or route.carries_records
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

"""The start and the end of an exchange, for both kinds of traces.

| the handler | the exchange ends with |
|---|---|
| returns a response | its error codes |
| returns None | "no answer": a Produce with acks=0 |
| raises KafkaError | the code, and its detail |
| raises an instruction to close the connection | the reason |
| is cancelled, because its client has disconnected or the broker stops | "cancelled" |
| raises another exception | UNKNOWN_SERVER_ERROR, and the exception |
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import count
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.explain.copying import TopicName
from odradek.broker.explain.events import Exchange
from odradek.broker.explain.shown import cut_text
from odradek.broker.explain.subjects import subject_field, topics_getter
from odradek.broker.request.context import CloseConnection, RequestContext
from odradek.broker.request.time_slices import ClientDisconnected
from odradek.protocol.api import Api
from odradek.protocol.code_generation.error_counts import ErrorCounts, error_counter
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError

_NAMES = {code.value: code.name for code in ErrorCode}
_NO_ERRORS: tuple[str, ...] = ()


class Exchanges:
    """Begins and ends the exchanges of one API. `numbers` is shared by all APIs of a trace."""

    def __init__(self, api: Api, clock: Clock, topic_name: TopicName, numbers: count[int]) -> None:
        self._api = api
        self._name = api.name
        self._time_ms = clock.time_ms
        self._monotonic = clock.monotonic
        self._topic_name = topic_name
        self._numbers = numbers
        self._topics = topics_getter(api.request)
        self._subject = subject_field(api.request)
        self._counters: dict[int, Callable[[Any, ErrorCounts], None]] = {}  # by version
        self._counts: defaultdict[int, int] = defaultdict(int)  # of one response at a time

    def begin(self, context: RequestContext, request: Any) -> Exchange:
        client_id = context.client_id
        subject = "" if self._subject is None else getattr(request, self._subject)
        return Exchange(
            next(self._numbers),
            self._time_ms(),
            context.connection.peer_address,
            cut_text(client_id) if client_id else client_id,
            self._name,
            context.api_version,
            context.correlation_id,
            _NO_ERRORS if self._topics is None else self._topics(request, self._topic_name),
            cut_text(subject) if subject else "",
        )

    def end(self, exchange: Exchange, response: Any, received_at: float) -> None:
        """End it with a response, or without one (None)."""
        if response is None:
            exchange.outcome = "no answer"
        else:
            exchange.errors = self._errors(response, exchange.version)
        exchange.seconds = self._monotonic() - received_at

    def fail(self, exchange: Exchange, error: BaseException, received_at: float) -> None:
        """End it with an exception of the handler."""
        exchange.errors, exchange.outcome = _outcome(error)
        exchange.seconds = self._monotonic() - received_at

    def _errors(self, response: Any, version: int) -> tuple[str, ...]:
        counter = self._counters.get(version)
        if counter is None:
            counter = self._counters[version] = error_counter(self._api.response, version)
        counts = self._counts
        counts.clear()
        counter(response, counts)
        if not counts or (len(counts) == 1 and 0 in counts):
            return _NO_ERRORS
        return tuple(_NAMES.get(code, str(code)) for code in counts if code)


def _outcome(error: BaseException) -> tuple[tuple[str, ...], str]:
    if isinstance(error, KafkaError):
        return (error.code.name,), cut_text(error.detail)
    if isinstance(error, CloseConnection | RemoteProtocolError):
        return (), f"the connection is closed: {cut_text(str(error))}"
    if isinstance(error, asyncio.CancelledError | ClientDisconnected | GeneratorExit):
        return (), "cancelled"
    return (ErrorCode.UNKNOWN_SERVER_ERROR.name,), cut_text(f"{type(error).__name__}: {error}")

"""The hook around the handlers: an interceptor (`request.handler.Interceptor`) that reports requests and answers.

The request is copied before the handler runs: the server writes offsets into its batches. The answer is copied before
the server sends it, while its file slices are open.

While a handler runs, `cause` is its exchange: a context variable, which tasks and timers started meanwhile inherit.
Threads do not. So `writing` has the requests in progress, to be found by their topics, except those that wait.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import partial
from itertools import count
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.explain.calls import Call
from odradek.broker.explain.copying import MessageCopy, TopicName
from odradek.broker.explain.events import Exchange, Fields, RequestAnswered, RequestReceived, TraceEvent
from odradek.broker.explain.exchanges import Exchanges
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler

MOST_WRITING = 1000


class RequestTracing:
    """An `Interceptor` that passes the requests of some APIs, or of all (None), to `record`. `numbers` are theirs.

    Those of the client with the id `reader` are passed only if they may change something.
    """

    def __init__(
        self,
        record: Callable[[TraceEvent], None],
        clock: Clock,
        topic_name: TopicName,
        apis: frozenset[str] | None,
        numbers: count[int],
        reader: str | None = None,
    ) -> None:
        self.record = record
        self.clock = clock
        self.topic_name = topic_name
        self.cause: ContextVar[Exchange] = ContextVar("cause")
        self.writing: dict[int, Exchange] = {}
        self._apis = apis
        self._numbers = numbers
        self._reader = reader

    def __call__(self, handler: Handler) -> Handle:
        if self._apis is not None and handler.api.name not in self._apis:
            return handler.handle
        traced = partial(self._handle, handler, Exchanges(handler.api, self.clock, self.topic_name, self._numbers))
        if self._reader is None or not handler.row.only_reads:
            return traced

        def handled(services: Any, context: RequestContext, request: Any) -> Answer:
            handle = handler.handle if context.client_id == self._reader else traced
            return handle(services, context, request)

        return handled

    def _handle(
        self, handler: Handler, exchanges: Exchanges, services: Any, context: RequestContext, request: Any
    ) -> Answer:
        exchange = exchanges.begin(context, request)
        copy = MessageCopy(request, context.api_version, self.topic_name)
        self.record(RequestReceived(exchange, copy.fields, copy.size))
        if not handler.row.waits_for_others and len(self.writing) < MOST_WRITING:
            self.writing[exchange.number] = exchange
        call = _TracedCall(self, exchanges, exchange, handler.api.response, context.received_at)
        answer: Answer = call.watched(call.run(partial(handler.handle, services, context, request)))
        return answer


class _TracedCall(Call):
    """A call whose answer is reported, and which is the cause of what its handler does."""

    __slots__ = ("_tracing",)

    def __init__(
        self,
        tracing: RequestTracing,
        exchanges: Exchanges,
        exchange: Exchange,
        response: type[Any],
        received_at: float,
    ) -> None:
        super().__init__(exchanges, exchange, response, received_at)
        self._tracing = tracing

    def enter(self) -> Token[Exchange]:
        return self._tracing.cause.set(self.exchange)

    def leave(self, entered: Token[Exchange]) -> None:
        self._tracing.cause.reset(entered)

    def answered(self, response: Any) -> None:
        super().answered(response)
        if response is None:
            self._report(None, 0)
            return
        copy = MessageCopy(response, self.exchange.version, self._tracing.topic_name)
        self._report(copy.fields, copy.size)

    def failed(self, error: BaseException) -> None:
        super().failed(error)
        self._report(None, 0)

    def _report(self, fields: Fields | None, size: int) -> None:
        tracing = self._tracing
        tracing.writing.pop(self.exchange.number, None)
        tracing.record(RequestAnswered(self.exchange, tracing.clock.time_ms(), fields, size))

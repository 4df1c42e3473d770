"""The brief hook around the handlers: one `Exchange` for each request, and nothing of its fields.

It keeps no reference to a request or its answer, so no buffer outlives its request.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from odradek.broker.clock import Clock
from odradek.broker.explain.calls import Call
from odradek.broker.explain.copying import TopicName
from odradek.broker.explain.events import Exchange
from odradek.broker.explain.exchanges import Exchanges
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler


class BriefTracing:
    """An `Interceptor` that passes the requests of some APIs, or of all (None), to `record`. `numbers` are theirs."""

    def __init__(
        self,
        record: Callable[[Exchange], None],
        clock: Clock,
        topic_name: TopicName,
        apis: frozenset[str] | None,
        numbers: count[int],
    ) -> None:
        self._record = record
        self._clock = clock
        self._topic_name = topic_name
        self._apis = apis
        self._numbers = numbers

    def __call__(self, handler: Handler) -> Handle:
        if self._apis is not None and handler.api.name not in self._apis:
            return handler.handle
        exchanges = Exchanges(handler.api, self._clock, self._topic_name, self._numbers)
        response, handle, record = handler.api.response, handler.handle, self._record

        def traced(services: Any, context: RequestContext, request: Any) -> Answer:
            exchange = exchanges.begin(context, request)
            record(exchange)
            try:
                result: Any = handle(services, context, request)
            except BaseException as error:
                exchanges.fail(exchange, error, context.received_at)
                raise
            if type(result) is response:  # without the object for a call, as most are
                exchanges.end(exchange, result, context.received_at)
                return result
            answer: Answer = Call(exchanges, exchange, response, context.received_at).watched(result)
            return answer

        return traced

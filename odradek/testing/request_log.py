"""The last requests of a broker, as lines of text, and a signal when one has been answered.

```
request ─► handler ─┬─ answer ──────────────────────────► changes + 1, listeners called
                    └─ future, coroutine or steps ─► end ─► the same
```

Requests of the handle itself, which have its client id, are neither kept nor signalled: a wait that describes a group
would otherwise wake itself, and its requests would replace those of the program under test.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.explain.brief import BriefTracing
from odradek.broker.explain.events import Exchange
from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler, Result
from odradek.broker.request.time_slices import Steps, is_steps

OWN_CLIENT_ID = "odradek-testing"
"""The client id of the clients of a handle."""
KEPT = 20
"""The number of requests in the message of a time-out, and in the report of a failed test."""
_CHANGES_NOTHING = "Fetch"


class RequestLog:
    """The last requests of a broker, over all its runs. `lines` and `clear` may be called on any thread."""

    def __init__(self, broker: Broker) -> None:
        """Begin with the next start of the broker."""
        self._exchanges: deque[Exchange] = deque(maxlen=KEPT)
        self._listeners: list[Callable[[], None]] = []
        self.broker = broker
        self._numbers = count(1)
        self.changes = 0
        """The number of requests so far that may have changed something: all but fetches."""
        broker.on_start.append(self._install)

    def lines(self) -> list[str]:
        """Return the last requests with their answers, the oldest first."""
        return [str(exchange) for exchange in tuple(self._exchanges)]

    def clear(self) -> None:
        """Forget the requests of an earlier test."""
        self._exchanges.clear()

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on the thread of the broker, after each request that may change something. It is short."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def _install(self) -> None:
        services, routes = self.broker.services, self.broker.routes

        def topic_name(topic_id: bytes) -> str | None:
            topic = services.metadata.image.topics_by_id.get(topic_id)
            return None if topic is None else topic.name

        tracing = BriefTracing(self._record, services.clock, topic_name, None, self._numbers)
        routes.add_interceptor(tracing, outermost=True)
        routes.add_interceptor(self._intercept, outermost=True)

    def _record(self, exchange: Exchange) -> None:
        if exchange.client_id != OWN_CLIENT_ID:
            self._exchanges.append(exchange)

    def _intercept(self, handler: Handler) -> Handle:
        """Return the handler's function, with the signal after it: an `Interceptor`."""
        handle = handler.handle
        if handler.api.name == _CHANGES_NOTHING:
            return handle

        def signalled(services: Any, context: RequestContext, request: Any) -> Answer:
            answer = handle(services, context, request)
            if context.client_id == OWN_CLIENT_ID:
                return answer
            if is_steps(answer):
                return _after_steps(answer, self._signal)
            if isinstance(answer, Awaitable):
                return _after(answer, self._signal)
            self._signal()
            return answer

        return signalled

    def _signal(self) -> None:
        self.changes += 1
        for listener in tuple(self._listeners):
            listener()


async def _after(answer: Awaitable[Result], done: Callable[[], None]) -> Result:
    try:
        return await answer
    finally:
        done()


def _after_steps(steps: Steps[Any], done: Callable[[], None]) -> Steps[Any]:
    try:
        return (yield from steps)
    finally:
        done()

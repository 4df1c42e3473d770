"""The last requests of a broker, as lines of text, and a signal when one has been answered.

```
request ─► handler ─┬─ answer ──────────────────────────► recorded: changes + 1, listeners called
                    └─ future, coroutine or steps ─► end ─► recorded
```

It is an interceptor: install it as the outermost on the thread of the broker. Requests of the handle itself, which have
its client id, are neither recorded nor signalled: a wait that describes a group would otherwise wake itself.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from odradek.broker.request.context import RequestContext
from odradek.broker.request.handler import Answer, Handle, Handler, Result
from odradek.broker.request.time_slices import Steps, is_steps

OWN_CLIENT_ID = "odradek-testing"
"""The client id of the clients of a handle."""
KEPT = 20
"""The number of requests in the message of a time-out, and in the report of a failed test."""
_CHANGES_NOTHING = "Fetch"


class RequestLog:
    """The last requests of the broker that it is installed in. `lines` may be called on any thread."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self.changes = 0
        """The number of recorded requests so far that may have changed something: all but fetches."""

    def lines(self) -> list[str]:
        """Return the last requests, the oldest first."""
        with self._lock:
            return list(self._lines)

    def clear(self) -> None:
        """Forget the requests of an earlier test."""
        with self._lock:
            self._lines.clear()

    def add_listener(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on the thread of the broker, after each request that may change something. It is short."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def intercept(self, handler: Handler) -> Handle:
        """Return the handler's function with the recording around it: an `Interceptor`."""
        handle, name = handler.handle, handler.api.name
        changes = name != _CHANGES_NOTHING

        def recorded(services: Any, context: RequestContext, request: Any) -> Answer:
            answer = handle(services, context, request)
            if context.client_id == OWN_CLIENT_ID:
                return answer
            done = partial(
                self._record, f"{name} v{context.api_version} of {context.client_id or 'a client without id'}", changes
            )
            if is_steps(answer):
                return _after_steps(answer, done)
            if isinstance(answer, Awaitable):
                return _after(answer, done)
            done()
            return answer

        return recorded

    def _record(self, line: str, changes: bool) -> None:
        with self._lock:
            self._lines.append(line)
        if changes:
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

"""One call of a handler, observed until its answer is known.

```
traced call ─► handler ─┬─ response, None, exception ─► reported at once
                        ├─ future ────────────────────► reported by a callback, before the server sends it
                        ├─ steps ─────────────────────► driven one by one, then as above
                        └─ other awaitable ───────────► awaited, then as above
```

The server gets what the handler returned, or an object of the same kind, so tracing changes nothing but the time that
a request takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from odradek.broker.explain.events import Exchange
from odradek.broker.explain.exchanges import Exchanges
from odradek.broker.request.time_slices import is_steps


class Call:
    """A call that ends its exchange. A subclass also reports it, and knows when its handler runs."""

    __slots__ = ("exchange", "exchanges", "received_at", "response")

    def __init__(self, exchanges: Exchanges, exchange: Exchange, response: type[Any], received_at: float) -> None:
        self.exchanges = exchanges
        self.exchange = exchange
        self.response = response
        self.received_at = received_at

    def enter(self) -> Any:
        """Called before a part of the handler runs; the result is passed to `leave` after it."""

    def leave(self, entered: Any) -> None:
        """Called after a part of the handler has run."""

    def answered(self, response: Any) -> None:
        """End the exchange with a response, or without any (None)."""
        self.exchanges.end(self.exchange, response, self.received_at)

    def failed(self, error: BaseException) -> None:
        """End the exchange with an exception of the handler."""
        self.exchanges.fail(self.exchange, error, self.received_at)

    def run(self, function: Callable[[], Any]) -> Any:
        """Run a part of the handler. StopIteration is its end, and no failure."""
        entered = self.enter()
        try:
            return function()
        except StopIteration:
            raise
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self.leave(entered)

    def watched(self, result: Any) -> Any:
        """Return the result of the handler, or an object like it that ends the exchange."""
        if result is None or isinstance(result, self.response):
            self.answered(result)
            return result
        if isinstance(result, asyncio.Future):
            result.add_done_callback(self._future_done)
            return result
        return self._stepped(result) if is_steps(result) else self._awaited(result)

    def _future_done(self, future: asyncio.Future[Any]) -> None:
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is None:
            self.answered(future.result())
        else:
            self.failed(error)

    def _stepped(self, steps: Any) -> Any:
        """Steps that do the same as `steps`. Between them others run, so each is entered on its own."""
        advance = partial(next, steps)
        try:
            while True:
                self.run(advance)
                try:
                    yield
                except GeneratorExit as closed:
                    self.failed(closed)
                    raise
        except StopIteration as end:
            return self.watched(end.value)
        finally:
            steps.close()

    async def _awaited(self, result: Any) -> Any:
        entered = self.enter()
        try:
            response = await result
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            self.leave(entered)
        self.answered(response)
        return response

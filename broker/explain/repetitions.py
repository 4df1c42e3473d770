"""Leaves out what an idle client repeats: a request with the same fields as the one before, and the same answer.

```
request, equal to the last of its API on this connection ─► held ─┬─ the same answer ──────► counted
                                                                   └─ anything else of it ─► printed after all
```

The count is printed before the next request of that kind that differs. Otherwise a consumer that waits for records
would fill the screen with its Fetches and Heartbeats, and every connection with the same ApiVersions. Epochs of fetch
sessions and of features, which only count, are not compared. Used on the printer's thread only.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.explain.events import Exchange, Fields, RequestAnswered, RequestReceived, TraceEvent
from odradek.broker.explain.text import MARGIN, event_lines
from odradek.broker.request.context import Address
from odradek.protocol.plural import pluralize

_MOST_KINDS: Final = 1000  # of connections and APIs that are remembered
_NOT_COMPARED: Final = frozenset({"session_epoch", "finalized_features_epoch"})
_OF_ALL_CONNECTIONS: Final = "ApiVersions"

Kind = tuple[Address | None, str]


class _Printed:
    """The last printed request of a kind, its answer, and how often both were repeated."""

    __slots__ = ("answer", "number", "repeated", "request")

    def __init__(self, received: RequestReceived) -> None:
        self.number = received.exchange.number
        self.request = _compared(received.fields)
        self.answer: Fields | None = None
        self.repeated = 0


class Repetitions:
    """Turns events into lines, without repetitions."""

    def __init__(self, *, coloured: bool = False) -> None:
        self._coloured = coloured
        self._printed: dict[Kind, _Printed] = {}
        self._held: dict[int, RequestReceived] = {}  # by number

    def lines(self, event: TraceEvent) -> list[str]:
        """Return the lines to print now."""
        if isinstance(event, RequestReceived):
            return self._received(event)
        if isinstance(event, RequestAnswered):
            return self._answered(event)
        held = None if isinstance(event, Exchange) or event.cause is None else self._held.pop(event.cause, None)
        before = [] if held is None else self._begin(held)
        return [*before, *event_lines(event, coloured=self._coloured)]

    def rest(self) -> list[str]:
        """Return the lines about repetitions that were not printed yet, at the end."""
        return [line for kind in tuple(self._printed) for line in self._about(kind)]

    def _received(self, received: RequestReceived) -> list[str]:
        last = self._printed.get(_kind(received.exchange))
        if last is None or last.answer is None or last.request != _compared(received.fields):
            return self._begin(received)
        if len(self._held) == _MOST_KINDS:
            self._held.clear()
        self._held[received.exchange.number] = received
        return []

    def _answered(self, answered: RequestAnswered) -> list[str]:
        exchange = answered.exchange
        last = self._printed.get(_kind(exchange))
        held = self._held.pop(exchange.number, None)
        if held is not None and last is not None and last.answer == _compared(answered.fields):
            last.repeated += 1
            return []
        before = [] if held is None else self._begin(held)
        last = self._printed.get(_kind(exchange))
        if last is not None and last.number == exchange.number:
            last.answer = _compared(answered.fields)
        return [*before, *event_lines(answered, coloured=self._coloured)]

    def _begin(self, received: RequestReceived) -> list[str]:
        kind = _kind(received.exchange)
        before = self._about(kind)
        if len(self._printed) == _MOST_KINDS:
            self._printed.clear()
        self._printed[kind] = _Printed(received)
        return [*before, *event_lines(received, coloured=self._coloured)]

    def _about(self, kind: Kind) -> list[str]:
        last = self._printed.get(kind)
        if last is None or not last.repeated:
            return []
        times, last.repeated = last.repeated, 0
        return [f"{MARGIN}… {kind[1]} #{last.number} and its answer were repeated {pluralize(times, 'time')}"]


def _kind(exchange: Exchange) -> Kind:
    return None if exchange.api == _OF_ALL_CONNECTIONS else exchange.peer, exchange.api


def _compared(fields: Fields | None) -> Fields | None:
    return fields and {name: value for name, value in fields.items() if name not in _NOT_COMPARED}

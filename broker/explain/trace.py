"""The trace: installs the hooks around a running broker, and keeps the last events.

```
requests ──── interceptor (outermost) ─┐
coordinators ─ observer ───────────────┼─► record ─► events (bounded: the oldest are dropped)
files ─────── shadowed methods ────────┘          └► sink
```
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from odradek.broker.explain.apis import api_names
from odradek.broker.explain.brief import BriefTracing
from odradek.broker.explain.events import Exchange, FileOperation, RequestReceived, TraceEvent
from odradek.broker.explain.file_operations import FileTracing
from odradek.broker.explain.file_runs import FileRuns
from odradek.broker.explain.requests import RequestTracing
from odradek.broker.explain.shown import cut_text
from odradek.broker.explain.text import event_lines
from odradek.broker.explain.transitions import (
    GroupView,
    TransactionView,
    group_transition,
    observe_groups,
    observe_transactions,
    transaction_transition,
)
from odradek.protocol.plural import pluralize

if TYPE_CHECKING:
    from odradek.broker.broker import Broker

MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 8 << 20
_EXCHANGE_BYTES: Final = 2000
"""The most that an exchange takes: five topics, a client id and a group of 64 bytes each, and the object itself."""

Sink = Callable[[TraceEvent], None]


class Trace:
    """The last events of a broker, from `install` to `remove`.

    `install` and `remove` are for the broker's event loop, while it runs; after a restart of the broker `install` must
    be called again. Events may be read on any thread: copy them first, as `tuple(trace.events)`.

    With `apis` only the requests of these APIs are recorded, and what they cause: what happens while they are handled,
    in tasks and timers that they start, and on threads in files of their topics. With `brief` only an `Exchange` is
    recorded for each request; such a trace costs little. `sink` is called with each event, on the thread where it
    happened; it must not block. Of the client with the id `reader`, which observes the broker for a test, only requests
    that may change something are recorded. Raises ValueError for an unknown API.
    """

    def __init__(
        self,
        broker: Broker,
        apis: Iterable[str] | None = None,
        *,
        max_events: int = MAX_EVENTS,
        max_bytes: int = MAX_BYTES,
        brief: bool = False,
        sink: Sink | None = None,
        reader: str | None = None,
    ) -> None:
        self._broker = broker
        self._apis = None if apis is None else api_names(apis)
        self._max_events = min(max_events, max_bytes // _EXCHANGE_BYTES) if brief else max_events
        self._max_bytes = max_bytes
        self._brief = brief
        self._sink = sink
        self._reader = reader
        self._lock = threading.Lock()
        self._bytes = 0
        self._undo: list[Callable[[], None]] = []
        self._numbers = count(1)
        self.events: deque[TraceEvent] = deque(maxlen=self._max_events if brief else None)
        """The events, the oldest first."""
        self.dropped = 0
        """The events that were dropped, because there were too many."""

    # ------------------------------------------------------------------------------------------------------ the hooks

    def install(self) -> None:
        """Record from now on. If it is installed already, install it again around what the broker consists of now."""
        self.remove()
        broker, clock = self._broker, self._broker.services.clock
        if self._brief:
            self._intercept(BriefTracing(self._record_exchange, clock, self._topic_name, self._apis, self._numbers))
            return
        record = FileRuns(self._record).record
        tracing = RequestTracing(record, clock, self._topic_name, self._apis, self._numbers, self._reader)
        self._intercept(tracing)
        hooks = _Hooks(tracing, broker, record, records_all=self._apis is None)
        self._undo += hooks.install()

    def remove(self) -> None:
        """Record nothing more. The events stay."""
        while self._undo:
            self._undo.pop()()

    def _intercept(self, tracing: BriefTracing | RequestTracing) -> None:
        routes = self._broker.routes
        routes.add_interceptor(tracing, outermost=True)
        self._undo.append(lambda: routes.remove_interceptor(tracing))

    def _topic_name(self, topic_id: bytes) -> str | None:
        topic = self._broker.services.metadata.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    # ----------------------------------------------------------------------------------------------------- the events

    def requests(self, last: int = 20) -> list[Exchange]:
        """Return the last requests, the oldest first, with their answers as far as there are any."""
        found = [exchange for event in tuple(self.events) if (exchange := _begun_by(event)) is not None]
        return found[-last:] if last else []

    def clear(self) -> None:
        """Forget all events."""
        with self._lock:
            self.events.clear()
            self._bytes = self.dropped = 0

    def __str__(self) -> str:
        lines = [line for event in tuple(self.events) for line in event_lines(event)]
        if self.dropped:
            lines.insert(0, f"… {pluralize(self.dropped, 'earlier event was', 'earlier events were')} dropped")
        return "\n".join(lines)

    def _record(self, event: Any) -> None:
        with self._lock:
            self.events.append(event)
            self._bytes += event.size
            while len(self.events) > self._max_events or (self._bytes > self._max_bytes and len(self.events) > 1):
                dropped: Any = self.events.popleft()
                self._bytes -= dropped.size
                self.dropped += 1
        if self._sink is not None:
            self._sink(event)

    def _record_exchange(self, exchange: Exchange) -> None:
        events = self.events
        if len(events) == self._max_events:
            self.dropped += 1
        events.append(exchange)
        if self._sink is not None:
            self._sink(exchange)


def _begun_by(event: TraceEvent) -> Exchange | None:
    if isinstance(event, RequestReceived):
        return event.exchange
    return event if isinstance(event, Exchange) else None


class _Hooks:
    """The hooks around coordinators and files: they record events with the request that caused them."""

    def __init__(
        self, tracing: RequestTracing, broker: Broker, record: Callable[[TraceEvent], None], *, records_all: bool
    ) -> None:
        self._tracing = tracing
        self._broker = broker
        self._record = record
        self._records_all = records_all
        self._clock = broker.services.clock
        self._loop_thread = threading.get_ident()

    def install(self) -> list[Callable[[], None]]:
        """Install them, and return the functions that remove them."""
        services = self._broker.services
        of_groups, of_transactions = observe_groups(self._group), observe_transactions(self._transaction)
        services.groups.add_observer(of_groups)
        services.transactions.add_observer(of_transactions)
        undo: list[Callable[[], None]] = [
            lambda: services.groups.remove_observer(of_groups),
            lambda: services.transactions.remove_observer(of_transactions),
        ]
        directories = self._broker.log_dirs.directories
        for directory in directories:
            prefix = f"{directory.path.name}/" if len(directories) > 1 else ""
            files = FileTracing(directory, prefix, self._file)
            files.install()
            undo.append(files.remove)
        return undo

    def _group(self, group_id: str, before: GroupView | None, after: GroupView | None, reason: str) -> None:
        cause = self._cause()
        if cause is not None or self._records_all:
            self._record(group_transition(self._clock.time_ms(), cause, group_id, before, after, reason))

    def _transaction(self, key: str, before: TransactionView | None, after: TransactionView | None, _: str) -> None:
        cause = self._cause()
        if cause is not None or self._records_all:
            self._record(transaction_transition(self._clock.time_ms(), cause, key, before, after))

    def _file(self, operation: str, path: str, **about: Any) -> None:
        on_loop = threading.get_ident() == self._loop_thread
        cause = self._cause() if on_loop else self._cause_on_thread(path)
        if cause is not None or self._records_all:
            self._record(FileOperation(self._clock.time_ms(), cause, operation, path, **about))

    def _cause(self) -> int | None:
        exchange = self._tracing.cause.get(None)
        return None if exchange is None else exchange.number

    def _cause_on_thread(self, path: str) -> int | None:
        """Return the oldest request in progress that names the topic of the path."""
        topics = {cut_text(part.rpartition("-")[0]) for part in path.split("/")}
        writing = tuple(self._tracing.writing.items())
        return next((number for number, exchange in writing if not topics.isdisjoint(exchange.topics)), None)

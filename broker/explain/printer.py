"""Prints events as they happen, on a thread of its own: a reader that is slow or gone never stops the broker.

At most `MOST_WAITING` events wait; those beyond are dropped and counted, and the next printed line says how many. When
the reader has closed the pipe, nothing more is printed. Bytes are written to the descriptor itself: at exit the
interpreter would wait for the lock of a file object in which this thread is blocked.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from odradek.broker.explain.events import TraceEvent
from odradek.broker.explain.repetitions import Repetitions
from odradek.protocol.plural import pluralize

MOST_WAITING: Final = 5000
CLOSE_SECONDS: Final = 1.0
"""The longest wait for a slow reader at the end."""


class Printer:
    """A `Sink` that prints to a descriptor. `on_closed` is called on its thread when nobody reads any more."""

    def __init__(
        self,
        descriptor: int,
        *,
        coloured: bool = False,
        most_waiting: int = MOST_WAITING,
        on_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._descriptor = descriptor
        self._repetitions = Repetitions(coloured=coloured)
        self._most_waiting = most_waiting
        self._on_closed = on_closed
        self._queue: SimpleQueue[TraceEvent | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._dropped = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="explain", daemon=True)
        self._thread.start()

    def __call__(self, event: TraceEvent) -> None:
        """Print the event soon, or drop it."""
        if self._is_closed:
            return
        if self._queue.qsize() < self._most_waiting:
            self._queue.put(event)
            return
        with self._lock:
            self._dropped += 1

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Print what waits, for `seconds` at most."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            while (event := self._queue.get()) is not None:
                self._write(self._about_dropped() + _joined(self._repetitions.lines(event)))
            self._write(self._about_dropped() + _joined(self._repetitions.rest()))
        except OSError:
            self._is_closed = True
            self._on_closed()

    def _about_dropped(self) -> str:
        with self._lock:
            dropped, self._dropped = self._dropped, 0
        return (
            f"… {pluralize(dropped, 'event was', 'events were')} dropped: the output is too slow\n" if dropped else ""
        )

    def _write(self, text: str) -> None:
        data = memoryview(text.encode(errors="replace"))
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:
                select.select((), (self._descriptor,), ())


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)

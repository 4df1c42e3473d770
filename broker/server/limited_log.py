"""Log lines that clients can cause as often as they like: one in ten seconds for each listener and kind.

The line after a pause counts the lines that were left out, so that an operator sees the size of a problem.
"""

from __future__ import annotations

from typing import Any, Final

from odradek.broker.clock import Clock
from odradek.broker.structured_logging import StructuredLogger

PAUSE_SECONDS: Final = 10.0


class LimitedLog:
    """Warnings of one logger. There are few kinds and listeners: no client chooses them."""

    def __init__(self, log: StructuredLogger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._last: dict[tuple[str, str], tuple[float, int]] = {}  # time of the last line, lines left out since

    def warning(self, kind: str, event: str, *, listener: str, **fields: Any) -> None:
        """Log `event` with its fields, but not if one of this kind and listener was logged in the last ten seconds."""
        now = self._clock.monotonic()
        last = self._last.get((kind, listener))
        if last is not None and now < last[0] + PAUSE_SECONDS:
            self._last[kind, listener] = last[0], last[1] + 1
            return
        self._last[kind, listener] = now, 0
        if last is not None and last[1]:
            fields["not_logged"] = last[1]
        self._log.warning(event, listener=listener, **fields)

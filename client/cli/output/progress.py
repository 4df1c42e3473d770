"""The progress of a long command: one line on standard error, rewritten in place, only on a terminal.

```
 45% #########...........  450,000 records  120,312/s  11.8 MB/s
```
Work of unknown size has no percentage. The line is removed when the command ends; `summary` is for the end.
"""

from __future__ import annotations

import sys
import time

from odradek.client.cli.output.terminal import is_terminal
from odradek.protocol.plural import pluralize

_INTERVAL = 0.2  # seconds between two renewals: five a second read well
_WIDTH = 20
_CLEAR = "\r\x1b[K"


class Progress:
    """Counts records and bytes; `total` is the whole work, in the unit of `done`, or None if it is unknown.

    With `is_shown` false it only counts, as it does if standard error is not a terminal.
    """

    def __init__(self, total: int | None = None, *, is_shown: bool = True) -> None:
        self.records = 0
        self.bytes = 0
        self._total = total
        self._began = time.monotonic()
        self._shown_at = self._began
        self._is_shown = is_shown and is_terminal(sys.stderr)

    @property
    def seconds(self) -> float:
        """The time since the start; never 0."""
        return max(time.monotonic() - self._began, 1e-6)

    def add(self, records: int, size: int, done: int = 0) -> None:
        """Count records and their bytes, and show them if it is time; `done` is the part of `total` that is done."""
        self.records += records
        self.bytes += size
        now = time.monotonic()
        if self._is_shown and now - self._shown_at >= _INTERVAL:
            self._shown_at = now
            print(f"{_CLEAR}{self._bar(done)}{self._rates()}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line, before something else is printed."""
        if self._is_shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def summary(self) -> str:
        """Return the totals: `1,000 records, 0.1 MB in 0.02 s: 50,000 records/s, 4.9 MB/s`."""
        rate = self.records / self.seconds
        return (
            f"{pluralize(self.records, 'record', spec=',')}, {self.bytes / 1e6:,.1f} MB in {self.seconds:,.2f} s:"
            f" {rate:,.0f} records/s, {self.bytes / 1e6 / self.seconds:,.1f} MB/s"
        )

    def _bar(self, done: int) -> str:
        if not self._total:
            return ""
        share = min(done / self._total, 1.0)
        return f"{share:4.0%} {'#' * int(share * _WIDTH):.<{_WIDTH}}  "

    def _rates(self) -> str:
        rate = self.records / self.seconds
        return (
            f"{pluralize(self.records, 'record', spec=',')}  {rate:,.0f}/s  {self.bytes / 1e6 / self.seconds:,.1f} MB/s"
        )

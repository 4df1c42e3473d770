"""How far a long command is and how fast: one line on standard error, renewed in place, only on a terminal.

```
 45% #########...........  450,000 records  120,312/s  11.8 MB/s
```
Of work whose size is not known there is no percentage. The line is gone when the command ends; `summary` is what
remains to be said.
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
    """Counts records and bytes; `total` is the whole work, in the unit of `done`, or None where nobody knows.

    With `is_shown` false it only counts, as it does where standard error is no terminal.
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
        """Since it began; never 0."""
        return max(time.monotonic() - self._began, 1e-6)

    def add(self, records: int, size: int, done: int = 0) -> None:
        """Count records and their bytes, and show it if it is time; `done` is how much of `total` is done by now."""
        self.records += records
        self.bytes += size
        now = time.monotonic()
        if self._is_shown and now - self._shown_at >= _INTERVAL:
            self._shown_at = now
            print(f"{_CLEAR}{self._bar(done)}{self._rates()}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Take the line away, before something else is printed."""
        if self._is_shown:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def summary(self) -> str:
        """What there was, as a sentence: `1,000 records, 0.1 MB in 0.02 s: 50,000 records/s, 4.9 MB/s`."""
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

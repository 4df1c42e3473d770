"""The output of the commands: tables, sizes, times, errors, a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TextIO

from odradek.broker.clock import Clock
from odradek.protocol.records.batch_header import NO_TIMESTAMP

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BAR_WIDTH = 40
_REDRAWN_AFTER = 0.1  # seconds


def size_text(size: float) -> str:
    """`1.5 GiB`."""
    for unit in _UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {_UNITS[-1]}"


def time_text(timestamp: int) -> str:
    """`2023-11-14T22:13:20.000Z` for milliseconds since 1970; `-` for none, the number itself if out of range."""
    if timestamp == NO_TIMESTAMP:
        return "-"
    try:
        moment = datetime.fromtimestamp(timestamp // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(timestamp)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{timestamp % 1000:03d}Z"


def error_text(error: Exception) -> str:
    """The text of an error: `/data: No such file or directory`."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def print_table(out: TextIO, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns; those whose first cell is a number are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    right = [bool(rows) and isinstance(cell, int | float) for cell in (rows[0] if rows else titles)]
    for line in ([*titles], *cells):
        padded = (
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        )
        out.write("  ".join(padded).rstrip() + "\n")


class ProgressBar:
    """`[########--------]  42 %  512.0 MiB/s` on a terminal, nothing elsewhere."""

    def __init__(self, out: TextIO, clock: Clock) -> None:
        self._out = out
        self._clock = clock
        self._started = self._drawn = clock.monotonic()
        self._is_shown = out.isatty()

    def show(self, done: int, total: int) -> None:
        now = self._clock.monotonic()
        if self._is_shown and now - self._drawn >= _REDRAWN_AFTER:
            self._drawn = now
            part = done / total if total else 1.0
            bar = "#" * int(part * _BAR_WIDTH)
            rate = size_text(done / (now - self._started))
            self._out.write(f"\r[{bar:-<{_BAR_WIDTH}}] {part:4.0%}  {rate}/s\033[K")
            self._out.flush()

    def clear(self) -> None:
        """Remove the bar, so that other output can follow."""
        if self._is_shown:
            self._out.write("\r\033[K")
            self._out.flush()

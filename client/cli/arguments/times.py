"""Points in time and durations on the command line.

| text | a point in time |
|---|---|
| `1700000000000` | milliseconds since the epoch |
| `2026-11-21`, `2026-11-21T20:15:00.250+01:00` | ISO 8601; without an offset it is UTC, as in Kafka's tools |
| `now`, `-1h`, `+10m`, `-1d12h` | from now on: d, h, m, s, ms |

A duration is `90s`, `1h30m`, `250ms`, or ISO 8601 as in Kafka's tools: `PT1H30M`, `P2D`.

Requests have times as int64, and negative numbers in place of a time mean something else: -1 the end, -2 the beginning.
So a time before 1970 that is looked up becomes 0, which finds the same records, and no record gets such a time.
"""

from __future__ import annotations

import argparse
import re
import time
from decimal import ROUND_HALF_EVEN, Context, Decimal

_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_PARTS = re.compile(rf"(?:{_PART.pattern})+")
_ISO_DURATION = re.compile(r"P(?=.)(?:[\d.]+D)?(?:T(?=.)(?:[\d.]+H)?(?:[\d.]+M)?(?:[\d.]+S)?)?", re.IGNORECASE)
_MAX_MS = (1 << 63) - 1
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)  # 19 digits of int64, and more than anybody types behind the point


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def timestamp(text: str) -> int:
    """Parse a point in time to look up; return ms since the epoch, at least 0. Raises ArgumentTypeError."""
    return max(0, _point(text))


def record_timestamp(text: str) -> int:
    """Parse the time of a record; return ms since the epoch. Raises ArgumentTypeError, also for one before 1970."""
    ms = _point(text)
    if ms < 0:
        raise argparse.ArgumentTypeError(f"{text} is before 1970, and the timestamp of a record is at least 0")
    return ms


def before_now(duration: int) -> int:
    """Return the time `duration` ms ago; 0 if that is before 1970."""
    return max(0, now_ms() - duration)


def duration_ms(text: str) -> int:
    """Parse a duration; return ms. Raises ArgumentTypeError."""
    shortened = text.upper().removeprefix("P").replace("T", "").lower() if _ISO_DURATION.fullmatch(text) else text
    if not _PARTS.fullmatch(shortened):
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90s, 1h30m or PT1H30M")
    ms = Decimal(0)
    for number, unit in _PART.findall(shortened):
        ms = _EXACT.add(ms, _EXACT.multiply(Decimal(number), Decimal(_UNITS[unit])))
    return _bounded(ms, text)


def iso(timestamp_ms: int) -> str:
    """Return a time in UTC for people: `2026-11-21T20:15:00.250Z`; "-" for -1, which means no timestamp."""
    if timestamp_ms < 0:
        return "-"
    from datetime import UTC, datetime

    try:
        when = datetime.fromtimestamp(timestamp_ms // 1000, UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)  # beyond the year 9999
    return f"{when.isoformat()}.{timestamp_ms % 1000:03}Z"


def _point(text: str) -> int:
    """Parse a point in time; return ms since the epoch, negative before 1970. Raises ArgumentTypeError."""
    if text.isdecimal():
        return _bounded(Decimal(text), text)
    if text == "now":
        return now_ms()
    if text[:1] in ("-", "+"):
        try:
            from_now = duration_ms(text[1:])
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not a time: relative to now, write -1h or +10m") from error
        return now_ms() - from_now if text[0] == "-" else _bounded(Decimal(now_ms() + from_now), text)
    return _iso(text)


def _iso(text: str) -> int:
    from datetime import UTC, datetime, timedelta

    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: write milliseconds, 2026-11-21T20:15:00Z, now, or -1h"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _bounded(ms: Decimal, text: str) -> int:
    """Round to whole ms. Raises ArgumentTypeError for more than an int64; a Decimal of any size is compared at once."""
    if ms > _MAX_MS:
        raise argparse.ArgumentTypeError(f"{text} is beyond the largest timestamp")
    return int(ms.to_integral_value(ROUND_HALF_EVEN))

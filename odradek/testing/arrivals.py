"""The records that a wait has read: those that it waits for, and a few of all for its message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from odradek.client.record import ConsumerRecord
from odradek.protocol.plural import pluralize

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

SHOWN = 10
"""Records in a message, the last ones."""
_BYTES = 60
"""Bytes of a key, value or header in a message."""
_HEADERS = 5
"""Headers of a record in a message."""

Condition = Callable[[ConsumerRecord], bool]


class Arrivals:
    """Records as they are read. `wanted` has those for which `where` is true, or all without `where`."""

    def __init__(self, where: Condition | None) -> None:
        self._where = where
        self.clear()

    def clear(self) -> None:
        """Forget everything: reading begins again."""
        self.wanted: list[ConsumerRecord] = []
        self._count = 0
        self._last: deque[tuple[ConsumerRecord, bool]] = deque(maxlen=SHOWN)

    def add(self, record: ConsumerRecord) -> None:
        """Count a record. Raises what `where` raises."""
        is_wanted = self._where is None or self._where(record)
        self._count += 1
        self._last.append((record, is_wanted))
        if is_wanted:
            self.wanted.append(record)

    def lines(self) -> list[str]:
        """Describe the last records; those for which `where` is true have a star."""
        count = f"{pluralize(self._count, 'record')} arrived" if self._count else "no record arrived"
        if self._where is not None and self._count:
            count += f", {len(self.wanted)} of them as the test wants (*)"
        if len(self._last) < self._count:
            count += f"; the last {len(self._last)}"
        star = "" if self._where is None else "* "
        blank = " " * len(star)
        lines = [f"  {star if is_wanted else blank}{_text(record)}" for record, is_wanted in self._last]
        return [f"{count}{':' if lines else ''}", *lines]


def _text(record: ConsumerRecord) -> str:
    headers = "".join(f" {name[:_BYTES]}={_bytes(value)}" for name, value in record.headers[:_HEADERS])
    more = " …" if len(record.headers) > _HEADERS else ""
    return f"{record.partition}:{record.offset} {_bytes(record.key)} {_bytes(record.value)}{headers}{more}"


def _bytes(value: bytes | None) -> str:
    if value is None or len(value) <= _BYTES:
        return repr(value)
    return f"{value[:_BYTES]!r}… ({len(value)} bytes)"

"""What a check has to say."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """How bad it is. A problem keeps clients from working; a warning may, now and then."""

    OK = 0
    NOTE = 1
    WARNING = 2
    PROBLEM = 3


class Finding(NamedTuple):
    """One line: about what (an address, a broker, a topic), what is so, and what to do about it, if anything."""

    severity: Severity
    subject: str
    text: str
    cure: str = ""

    def __str__(self) -> str:
        end = "" if self.cure.endswith("?") else "."
        return f"{self.subject}: {self.text}.{f' {self.cure}{end}' if self.cure else ''}"

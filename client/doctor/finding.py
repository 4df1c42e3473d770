"""The result of a check."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Severity(IntEnum):
    """The severity: a problem stops clients from working, a warning may do so at times."""

    OK = 0
    NOTE = 1
    WARNING = 2
    PROBLEM = 3


class Finding(NamedTuple):
    """One line: the subject (an address, a broker, a topic), what was found, and a cure if one is needed."""

    severity: Severity
    subject: str
    text: str
    cure: str = ""

    def __str__(self) -> str:
        end = "" if self.cure.endswith("?") else "."
        return f"{self.subject}: {self.text}.{f' {self.cure}{end}' if self.cure else ''}"

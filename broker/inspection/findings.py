"""The warnings of `odradek.broker.storage` while a directory is opened, collected instead of logged.

A broker that starts on the directory logs the same: they name the damage and the repair.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STORAGE = "odradek.broker.storage"


class Findings(logging.Handler):
    """A log handler that collects messages, each once, in order.

    `unreadable` counts those that say that something cannot be read.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.unreadable = 0
        self._lines: dict[str, None] = {}

    def emit(self, record: logging.LogRecord) -> None:
        self.add(record.getMessage())

    def add(self, line: str) -> None:
        self._lines[line] = None

    def cannot_read(self, line: str) -> None:
        self.unreadable += 1
        self.add(line)

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def about(self, directory: Path) -> list[str]:
        """The messages that name the directory, or a file in it."""
        named = re.compile(re.escape(str(directory)) + r"(?![\w.-])")
        return [line for line in self._lines if named.search(line)]


@contextmanager
def collected() -> Iterator[Findings]:
    """Collect the warnings of the block."""
    logger = logging.getLogger(_STORAGE)
    findings = Findings()
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(findings)
    try:
        yield findings
    finally:
        logger.removeHandler(findings)
        logger.propagate = propagated

"""What the client logs while a command runs: `warning: …` on standard error, such as a broker that is tried again.

Records that were refused are not told here, batch by batch: the command says at its end how many they were, and why.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.client.cli.output.terminal import YELLOW, paint

_TOLD_BY_THE_COMMAND = "odradek.client.producer.delivery"


class _StandardError(logging.Handler):
    """Writes to what is standard error at that moment."""

    def emit(self, record: logging.LogRecord) -> None:
        print(f"{paint('warning:', YELLOW, sys.stderr)} {record.getMessage()}", file=sys.stderr)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the client's warnings, for as long as this lasts."""
    handler = _StandardError(logging.WARNING)
    handler.addFilter(lambda record: record.name != _TOLD_BY_THE_COMMAND)
    logger = logging.getLogger("odradek.client")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)

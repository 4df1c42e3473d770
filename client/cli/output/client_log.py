"""Warnings of the client, printed on standard error as `warning: …` while a command runs.

Warnings about refused batches are left out: the command prints at its end how many records were refused, and why.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.client.cli.output.property_names import with_property_names
from odradek.client.cli.output.terminal import YELLOW, paint

_REPORTED_BY_THE_COMMAND = "odradek.client.producer.delivery"


class _StandardError(logging.Handler):
    """Writes to the standard error of the moment, which tests replace."""

    def emit(self, record: logging.LogRecord) -> None:
        text = with_property_names(record.getMessage())
        print(f"{paint('warning:', YELLOW, sys.stderr)} {text}", file=sys.stderr)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the client's warnings until the block ends."""
    handler = _StandardError(logging.WARNING)
    handler.addFilter(lambda record: record.name != _REPORTED_BY_THE_COMMAND)
    logger = logging.getLogger("odradek.client")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)

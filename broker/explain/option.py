"""`--explain` on the command line: a trace that is printed to standard output."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from odradek.broker.explain.printer import Printer
from odradek.broker.explain.trace import Trace

if TYPE_CHECKING:
    from odradek.broker.broker import Broker


@contextmanager
def explanation(broker: Broker, apis: frozenset[str], out: TextIO) -> Iterator[Callable[[], None]]:
    """Print events to `out` during the block, once the yielded function is called; `apis` is empty for all.

    The function is for the event loop of the broker, when it runs. Only terminals get colours, unless NO_COLOR is set.
    """
    loop: asyncio.AbstractEventLoop | None = None

    def stop_tracing() -> None:
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(trace.remove)  # nobody reads: the broker need not copy requests any more

    def start() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        trace.install()

    coloured = out.isatty() and not os.environ.get("NO_COLOR")
    out.flush()
    printer = Printer(out.fileno(), coloured=coloured, on_closed=stop_tracing)
    trace = Trace(broker, apis or None, max_events=1, sink=printer)
    try:
        yield start
    finally:
        printer.close()

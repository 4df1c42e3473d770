"""A stall of the writer threads: while the event loop reads or replaces the state of all logs, no append runs.

```
loop:    submit to each writer ─► both have reached it ─► the caller's block ─► release
writer:  … append, append, [stall ─────────────────────────────────────────────────────► ] append …
```

Appends on the event loop itself cannot run meanwhile, as long as the block does not await. An append that had ended
before the stall has been counted, because a writer reports its ends in order.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from odradek.broker.replication.appends.disk_threads import DiskThreads


@asynccontextmanager
async def writers_stalled(threads: DiskThreads) -> AsyncIterator[None]:
    """Stall the writers of `threads` for the block, which must not await."""
    loop = asyncio.get_running_loop()
    release = threading.Event()
    reached = []
    try:
        for writer in threads.writers:
            stalled: asyncio.Future[None] = loop.create_future()
            writer.submit(partial(_stall, loop, stalled, release), _ignore)
            reached.append(stalled)
        await asyncio.gather(*reached)
        yield
    finally:
        release.set()


def _stall(loop: asyncio.AbstractEventLoop, stalled: asyncio.Future[None], release: threading.Event) -> None:
    loop.call_soon_threadsafe(_reach, stalled)
    release.wait()


def _reach(stalled: asyncio.Future[None]) -> None:
    if not stalled.done():  # it is cancelled with its caller
        stalled.set_result(None)


def _ignore(_result: Any, _error: BaseException | None) -> None:
    """Do nothing at the end of a stall."""

"""Clients of a worker process, reused by its tasks: a task then opens no connection.

```
task ── worker_client() ──► an idle client with the same settings ──► the task uses it alone ──► idle again
                            or a new one, which connects                      └─ an error ──► closed
```
Spark runs tasks one after another in the same worker process. A client keeps its connections between tasks, and to read
also the metadata of topics: they are requested again when a Fetch shows that they are old. A task that writes requests
them, because the number of partitions must be current.

| event | reaction |
|---|---|
| a broker has closed a connection of an idle client | the next task opens it again |
| a client was idle for a minute, or there are too many | it is closed when the next task begins or ends |
| the process was forked | the child uses and closes no client of its parent: they share sockets |
| the process ends | its clients are closed |

Spark ends a worker that was idle for a minute, so connections do not stay open for longer.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from odradek.client.config import ClientConfig
from odradek.pipeline.blocking_client import BlockingClient

_MOST_IDLE: Final = 4
_IDLE_SECONDS: Final = 60.0
_PASSES: Final = 3  # of the event loop, to handle what arrived while the client was idle: read, close, report


class _Idle(NamedTuple):
    client: BlockingClient
    creates_topics: bool
    since: float


_idle: list[_Idle] = []
_lock = threading.Lock()
_of_parent: list[list[_Idle]] = []  # referenced, so that they are never finalised


@contextmanager
def worker_client(config: ClientConfig, timeout_ms: int, *, creates_topics: bool = False) -> Iterator[BlockingClient]:
    """Yield a client for one task; an idle one with the same settings, or a new one. Raises ClientError.

    A new client retries for `timeout_ms` while no bootstrap server responds.
    """
    client = _take(config, creates_topics)
    if client is None:
        client = BlockingClient(config, timeout_ms, creates_topics=creates_topics)
    try:
        yield client
    except GeneratorExit:  # a task that needs no more rows
        _put(client, creates_topics)
        raise
    except BaseException:
        client.close()
        raise
    _put(client, creates_topics)


def close_idle_clients(idle_for: float = 0) -> None:
    """Close the clients that were idle for so many seconds."""
    before = time.monotonic() - idle_for
    with _lock:
        old = [one for one in _idle if one.since <= before]
        _idle[:] = [one for one in _idle if one.since > before]
    for one in old:
        one.client.close()


def _take(config: ClientConfig, creates_topics: bool) -> BlockingClient | None:
    close_idle_clients(_IDLE_SECONDS)
    with _lock:
        found = next(
            (one for one in _idle if (one.client.config, one.creates_topics) == (config, creates_topics)), None
        )
        if found is None:
            return None
        _idle.remove(found)
    found.client.run(_handle_events())
    return found.client


def _put(client: BlockingClient, creates_topics: bool) -> None:
    if creates_topics:
        client.cluster.forget_topics()
    else:
        client.cluster.untrack_topics()
    with _lock:
        _idle.append(_Idle(client, creates_topics, time.monotonic()))
        surplus = _idle[:-_MOST_IDLE]
        del _idle[:-_MOST_IDLE]
    for one in surplus:
        one.client.close()


async def _handle_events() -> None:
    for _ in range(_PASSES):
        await asyncio.sleep(0)


def _start_child() -> None:
    global _idle, _lock
    _of_parent.append(_idle)
    _idle, _lock = [], threading.Lock()


os.register_at_fork(after_in_child=_start_child)
atexit.register(close_idle_clients)

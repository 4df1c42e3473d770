"""The time limit of a request that changes metadata: its transactions fail with REQUEST_TIMED_OUT when it is over.

```
with time_limit(request.timeout_ms):                       handler
    await create_topic(metadata, …)
        └ async with limited(): store.txn, repeated        Metadata.commit, Metadata.read
```

A transaction that has timed out may still be applied, now or later: the client looks, and sends the request again. So a
metadata store that cannot be reached fails the requests of administrators, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError

DEFAULT_MS: Final = 30_000
"""The limit of requests without one: the default of the clients' request.timeout.ms."""
_SHORTEST_MS: Final = 500  # one attempt: some clients send 0, and mean "without waiting for other brokers"

_ends_at: ContextVar[float | None] = ContextVar("ends_at", default=None)  # on the loop's clock


@contextmanager
def time_limit(timeout_ms: int) -> Iterator[None]:
    """Limit the transactions of this task, and of tasks that it starts, to `timeout_ms` from now; at least 500 ms."""
    token = _ends_at.set(asyncio.get_running_loop().time() + max(timeout_ms, _SHORTEST_MS) / 1000)
    try:
        yield
    finally:
        _ends_at.reset(token)


@asynccontextmanager
async def limited() -> AsyncIterator[None]:
    """Raise `KafkaError` REQUEST_TIMED_OUT if the block does not end within the limit of the task, or 30 s without."""
    ends_at = _ends_at.get()
    if ends_at is None:
        ends_at = asyncio.get_running_loop().time() + DEFAULT_MS / 1000
    try:
        async with asyncio.timeout_at(ends_at):
            yield
    except TimeoutError:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the metadata store did not answer in time") from None

"""The transactions of `produce` and `perf produce`: one after the other, each for a time, or one for the whole run.

```python
async with TimedTransactions(producer, duration_ms) as transactions:
    ...
        await transactions.begin()             # unless one is open
        await producer.send("orders", b"value")
        if time.monotonic() >= transactions.ends_at:
            await transactions.commit()
```
A transaction begins with its first record, so that none is open while there is nothing to send. The end of the block
commits the last one; any exception, Ctrl-C among them, aborts it.
"""

from __future__ import annotations

import argparse
import math
import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from odradek.client.cli.arguments.argument_types import milliseconds, named

if TYPE_CHECKING:
    from odradek.client.producer.producer import Producer


def add_transaction_arguments(parser: argparse.ArgumentParser | argparse._ArgumentGroup, default: str) -> None:
    """Add the flags of Kafka's ProducerPerformance; `default` describes the end without --transaction-duration-ms."""
    parser.add_argument("--transactional-id", type=named, metavar="ID", help="send in transactions of this id")
    parser.add_argument(
        "--transaction-duration-ms",
        type=milliseconds,
        metavar="MS",
        help=f"commit a transaction after this time (default: {default})",
    )


class TimedTransactions:
    """The transactions of one producer, each for `duration_ms`; None: one that ends with the block.

    `ends_at` is when the open one is to be committed (`time.monotonic`), infinite without one. Without
    `is_transactional` this does nothing, so that callers need not distinguish.
    """

    def __init__(self, producer: Producer, duration_ms: int | None, *, is_transactional: bool) -> None:
        self._producer = producer
        self._seconds = math.inf if duration_ms is None else duration_ms / 1000
        self._is_transactional = is_transactional
        self._open = AsyncExitStack()
        self.ends_at = math.inf
        self._is_open = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._open.__aexit__(kind, error, traceback)

    @property
    def must_begin(self) -> bool:
        """Whether the next record needs `begin` first."""
        return self._is_transactional and not self._is_open

    async def begin(self) -> None:
        """Begin a transaction unless one is open. Raises ClientError."""
        if self.must_begin:
            await self._open.enter_async_context(self._producer.transaction())
            self._is_open = True
            self.ends_at = time.monotonic() + self._seconds

    async def commit(self) -> None:
        """Commit the open transaction. Raises ClientError."""
        self._is_open = False
        self.ends_at = math.inf
        await self._open.aclose()

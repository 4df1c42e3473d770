"""`Transaction`: records and offsets that become visible together, or not at all.

```python
async with Producer("localhost:9092", transactional_id="billing-1") as producer:
    async with producer.transaction() as transaction:
        await producer.send("invoices", b"12.50", key=b"customer 7")
        await transaction.send_offsets({("orders", 0): 43}, consumer)
```
| end of the block | what happens |
|---|---|
| normal | all records are sent, then the transaction is committed |
| exception, cancellation | aborted; the exception goes on |
| a record or the offsets failed | aborted; TransactionAbortedError: repeat the transaction |
| another producer with the same transactional id | ProducerFencedError: this producer can do nothing more |
| TimeLimitError of the commit | unknown: await `commit()` again until it returns |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from odradek.client.errors import ClientError
from odradek.client.record import AnyPartition, CommittedOffset, TopicPartition
from odradek.client.transactions.transaction_manager import TransactionManager
from odradek.client.transactions.transaction_state import Status

if TYPE_CHECKING:
    from odradek.client.consumer.consumer import Consumer

_LOG = logging.getLogger(__name__)


class Transaction:
    """One transaction of a producer; for `async with`. A producer has at most one at a time."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._has_ended = True  # until __aenter__

    async def __aenter__(self) -> Self:
        await self._manager.begin()
        self._has_ended = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._has_ended:
            return
        if error is None:
            await self.commit()
        else:
            await self._abort_after(error)

    async def send_offsets(self, offsets: Mapping[AnyPartition, int | CommittedOffset], consumer: Consumer) -> None:
        """Commit offsets of a consumer's group, those of the next records to read, with this transaction.

        Raises TransactionAbortedError if the group was rebalanced, or the consumer is no longer a member; after
        TimeLimitError repeat the call.
        """
        wanted = {
            TopicPartition(*partition): CommittedOffset(at) if isinstance(at, int) else at
            for partition, at in offsets.items()
        }
        await self._manager.send_offsets(wanted, consumer.group_metadata())

    async def commit(self) -> None:
        """Commit before the end of the block, or again after a TimeLimitError of the first attempt.

        Raises TransactionAbortedError, ProducerFencedError, TimeLimitError.
        """
        try:
            await self._manager.commit()
        except asyncio.CancelledError as error:
            await self._abort_after(error)
            raise
        finally:
            self._has_ended = self._manager.state.status is not Status.COMMITTING

    async def abort(self) -> None:
        """Abort before the end of the block. Raises ClientError."""
        self._has_ended = True
        await self._manager.abort()

    async def _abort_after(self, error: BaseException) -> None:
        """Abort, and raise TransactionAbortedError or ProducerFencedError in place of a failure of the client."""
        state = self._manager.state
        if not (state.may_abort or state.status is Status.UNUSABLE):
            return  # it has ended, or its commit may have been executed
        failed = isinstance(error, ClientError) and state.status in (Status.FAILED, Status.UNUSABLE)
        aborted = state.aborted(f"commit a transaction of {state.transactional_id}")
        try:
            await self.abort()
        except ClientError as refused:
            if refused is error:
                return
            if failed:
                raise refused from error
            _LOG.warning("%s", refused)  # the exception of the block goes on; the next transaction raises this one
        if failed:
            raise aborted from error

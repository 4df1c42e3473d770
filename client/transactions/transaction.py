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
| another producer with the same transactional id | aborted; ProducerFencedError: this producer can do nothing more |
| no response to the commit | unknown; CommitUnknownError: await `outcome()` |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

from odradek.client.errors import ClientError, ConfigurationError
from odradek.client.record import AnyPartition, CommittedOffset, TopicPartition
from odradek.client.transactions.transaction_manager import TransactionManager
from odradek.client.transactions.transaction_state import Status, TransactionEnd, TransactionOutcome

if TYPE_CHECKING:
    from odradek.client.consumer.consumer import Consumer

_LOG = logging.getLogger(__name__)


class Transaction:
    """One transaction of a producer; for `async with`. A producer has at most one at a time."""

    def __init__(self, manager: TransactionManager) -> None:
        self._manager = manager
        self._has_ended = True  # until __aenter__
        self._ended: TransactionEnd | None = None

    async def __aenter__(self) -> Self:
        self._ended = await self._manager.begin()
        self._has_ended = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        state = self._manager.state
        if self._has_ended or state.ended is not self._ended or state.status is Status.READY:
            return  # the last two: a cancelled commit has ended in the background
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
        """Commit before the end of the block, or again after CommitUnknownError.

        Raises TransactionAbortedError and ProducerFencedError, after which nothing of the transaction is visible, and
        CommitUnknownError, after which all of it may be. A cancelled commit is aborted, or continues if it was sent
        already: `outcome` waits for it.
        """
        try:
            await self._manager.commit()
        except asyncio.CancelledError as error:
            await self._abort_after(error)
            raise
        finally:
            self._has_ended = self._manager.state.status is not Status.COMMITTING

    async def abort(self) -> None:
        """Abort before the end of the block. Raises ClientError; nothing of the transaction is visible even then."""
        self._has_ended = True
        await self._manager.abort()

    async def outcome(self) -> TransactionOutcome:
        """Return whether the transaction is committed or aborted; if that is in doubt, ask the coordinator.

        The commit is repeated: if the coordinator has not received it, it is executed now. Call this before the
        producer is closed, and again after a CommitUnknownError, unless it says that the outcome can never be known
        because another producer has used the transactional id since. Raises ConfigurationError while the transaction
        is open.
        """
        if self._ended is None:
            raise ConfigurationError("resolve a transaction", "it was not begun", "Use it with `async with`")
        return await self._manager.outcome(self._ended)

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
            if failed and state.status is Status.UNUSABLE:
                raise refused from error
            _LOG.warning("%s", refused)  # the exception of the block goes on; the next transaction raises this one
        if failed:
            raise aborted from error

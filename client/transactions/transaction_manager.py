"""Begins and ends the transactions of one producer, and adds partitions and offsets to them.

The sender calls `may_send` for each batch: with version 1 of the protocol a partition is first added to the
transaction, in the background, with all others that need it at that time. Delivery reports each failed batch
(`batch_failed`); from then on nothing is sent, and the sender discards the other batches.

The end of a transaction is a task of its own, so that a cancelled caller does not leave it half done: the task goes on,
and the next transaction waits for it. Before an abort no request with records is in flight any more, because a late one
could become part of the next transaction.

A commit in doubt (`transaction_state`) stays COMMITTING: EndTxn is repeated by each call of `commit` and `outcome`, and
the next transaction cannot begin before it is resolved.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from odradek.client.config import ProducerConfig
from odradek.client.errors import (
    BrokerError,
    ClientError,
    ClosedError,
    CommitUnknownError,
    ConfigurationError,
    ProducerFencedError,
    TransactionAbortedError,
)
from odradek.client.network.cluster import Cluster
from odradek.client.record import CommittedOffset, GroupMetadata, TopicPartition
from odradek.client.transactions.transaction_requests import TransactionRequests
from odradek.client.transactions.transaction_state import (
    Status,
    TransactionEnd,
    TransactionOutcome,
    TransactionState,
)
from odradek.protocol.errors import ErrorCode

_LOG = logging.getLogger(__name__)

_REFUSED_END = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE})
"""Errors of EndTxn after which InitProducerId decides whether the producer may continue."""

_RESOLVING = _REFUSED_END | {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
"""Errors that resolve a commit in doubt, or show that it can never be resolved."""

_VERSION_2 = 2


class TransactionManager:
    """The transactions of one producer.

    `on_change` is called after the state has changed, `flush` waits until every batch is finished, and `wait_idle`
    until no request with records is in flight.
    """

    def __init__(self, config: ProducerConfig, cluster: Cluster) -> None:
        assert config.transactional_id is not None
        self.on_change: Callable[[], None] = lambda: None
        self.flush: Callable[[], Awaitable[None]]
        self.wait_idle: Callable[[], Awaitable[None]]
        self.state = TransactionState(config.transactional_id)
        self._config = config
        self._requests = TransactionRequests(config, cluster, self.state)
        self._unadded: set[tuple[str, int]] = set()
        self._adding: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Get the id and epoch of the transactional id, which fences older producers. Raises ClientError."""
        await self._requests.init_producer_id(self._config.max_block_ms)

    async def close(self) -> None:
        """Abort an open transaction, and wait for its end. The caller bounds the time."""
        if self.state.status in (Status.OPEN, Status.FAILED, Status.ABORTING):
            try:
                await self.abort()
            except ClientError as error:
                _LOG.warning("%s", error)  # the coordinator aborts it after its timeout
        elif self._ending is not None:
            await asyncio.wait((self._ending,))

    async def cancel(self) -> None:
        """Cancel all tasks."""
        tasks = [task for task in (self._adding, self._ending) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def begin(self) -> TransactionEnd:
        """Open a transaction, after the end of the one before, and return its end to be. Raises ClientError."""
        state = self.state
        if self._ending is not None:
            await asyncio.wait((self._ending,))
        if state.status is Status.ABORTING:
            await self.abort()
        if state.status is Status.READY and state.needs_epoch:
            await self._requests.init_producer_id(self._config.max_block_ms)
        state.begin(uses_version_2=self._requests.transaction_version >= _VERSION_2)
        self.on_change()
        return state.ended

    async def commit(self) -> None:
        """Send all records and commit.

        Raises TransactionAbortedError if it is aborted instead, ProducerFencedError if the producer is of no more use,
        too, and CommitUnknownError.
        """
        state = self.state
        if state.ended.is_lost:
            raise self._unknown(state.ended.failure)
        state.commit()
        self.on_change()
        if not state.commit_was_sent:
            await self.flush()
        await self._finish_commit()

    async def outcome(self, ended: TransactionEnd) -> TransactionOutcome:
        """Return the outcome of a transaction, resolved if it is in doubt. Raises the errors of Transaction.outcome."""
        if self._ending is not None and ended.outcome is None:
            await asyncio.wait((self._ending,))
        if ended.outcome is None:
            if ended.is_lost:
                raise self._unknown(ended.failure)
            if not self.state.commit_was_sent:
                tried = f"resolve a transaction of {self.state.transactional_id}"
                raise ConfigurationError(tried, "it is open", "Await commit() or abort() first")
            with suppress(TransactionAbortedError, ProducerFencedError):
                await self._finish_commit()
        assert ended.outcome is not None, "otherwise it is a CommitUnknownError"
        return ended.outcome

    async def _finish_commit(self) -> None:
        """Commit after the records were sent, or continue with that. Raises the errors of `commit`."""
        state = self.state
        if state.status is Status.COMMITTING:
            state.commit_was_sent = state.has_started  # now, since an abort may precede the first step of the task
            try:
                await self._end(committed=True)
            except ClientError as error:
                raise self._unknown(error) from error
        if state.ended.outcome is TransactionOutcome.COMMITTED:
            return
        aborted = state.aborted(self._commit_words)
        try:
            await self.abort()
        except ClientError as error:
            if state.ended.outcome is None:
                raise self._unknown(error) from error
            if state.status is Status.UNUSABLE:
                raise
            _LOG.warning("%s", error)  # the next transaction repeats the abort
        raise aborted

    @property
    def _commit_words(self) -> str:
        return f"commit a transaction of {self.state.transactional_id}"

    def _unknown(self, failure: ClientError | None) -> CommitUnknownError:
        assert failure is not None
        cure = "It may be committed or not: await outcome() of the transaction, until it returns"
        if self.state.ended.is_lost or isinstance(failure, ClosedError):
            cure = "It may be committed or not, and this producer can no longer find out: read the topics"
        error = CommitUnknownError(self._commit_words, failure.summary, cure)
        error.__cause__ = failure
        return error

    async def abort(self) -> None:
        """Discard the records that are not acknowledged, and abort. Raises ClientError."""
        self.state.abort()
        self.on_change()
        await self._end(committed=False)
        self.state.check_usable()

    async def send_offsets(self, offsets: Mapping[TopicPartition, CommittedOffset], group: GroupMetadata) -> None:
        """Commit offsets of a group in the open transaction.

        Raises TransactionAbortedError, TimeLimitError (repeat the call), ProducerFencedError and other ClientErrors.
        """
        state = self.state
        tried = f"commit offsets of group {group.group_id} in a transaction of {state.transactional_id}"
        state.check_accepts(tried)
        if not offsets:
            return
        state.has_started = True
        try:
            if not state.uses_version_2 and group.group_id not in state.groups:
                await self._requests.add_offsets(group.group_id)
                state.groups.add(group.group_id)
            await self._requests.commit_offsets(offsets, group)
        except ClientError as error:
            if error.retriable:
                raise
            self._fail(error)
            state.check_accepts(tried)
            raise

    # For the sender.

    def may_send(self, topic: str, partition: int) -> bool:
        """Whether a batch of this partition may be sent now; if it must be added first, that begins."""
        state = self.state
        if not state.sends_records:
            return False
        if not state.uses_version_2:
            key = (topic, partition)
            if key not in state.partitions:
                self._unadded.add(key)
                if self._adding is None or self._adding.done():  # an eager task has ended when it is assigned
                    self._adding = asyncio.create_task(self._add_partitions())
                return False
        state.has_started = True
        return True

    def batch_failed(self, error: ClientError, *, has_sequence: bool) -> None:
        """Record that a batch was not acknowledged; with a sequence, the partition has a gap now."""
        self.state.needs_epoch |= has_sequence
        self._fail(error)

    def discard_error(self) -> ClientError:
        """The error for the records that are discarded."""
        state = self.state
        if state.status is Status.UNUSABLE and state.failure is not None:
            return state.failure
        return state.aborted("send records")

    def _fail(self, error: ClientError) -> None:
        before = self.state.status
        self.state.fail(error)
        if self.state.status is not before:
            self.on_change()

    async def _add_partitions(self) -> None:
        state = self.state
        try:
            while self._unadded and state.sends_records:
                adding, self._unadded = self._unadded, set()
                state.has_started = True
                await self._requests.add_partitions(adding)
                state.partitions |= adding
                self.on_change()
        except ClientError as error:
            self._fail(error)
        finally:
            self._adding = None

    async def _end(self, *, committed: bool) -> None:
        """End the transaction in a task, which goes on if the caller is cancelled. Raises ClientError."""
        if self._ending is None or self._ending.done():  # its callback may not have run yet
            self._ending = asyncio.create_task(self._commit() if committed else self._abort())
            self._ending.add_done_callback(self._ended)
        ending = self._ending
        await asyncio.wait((ending,))
        if ending.cancelled():
            raise ClosedError(f"end a transaction of {self.state.transactional_id}", "the producer was closed")
        ending.result()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._ending is task:
            self._ending = None
        if not task.cancelled():
            task.exception()  # marks it as retrieved: callers that wait raise it
        self.on_change()

    async def _commit(self) -> None:
        if self.state.has_started:
            try:
                await self._requests.end(committed=True)
            except ClientError as error:
                code = error.code if isinstance(error, BrokerError) else None
                if code is ErrorCode.INVALID_TXN_STATE:
                    self.state.is_in_doubt = False
                if self.state.is_in_doubt and code not in _RESOLVING:
                    raise
                self._fail(error)
                return
        self.state.end(TransactionOutcome.COMMITTED)

    async def _abort(self) -> None:
        state = self.state
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        self._unadded.clear()
        await self.wait_idle()
        state.check_usable()
        try:
            if state.has_started:
                await self._end_aborted()
            if state.needs_epoch:
                await self._requests.init_producer_id(self._config.max_block_ms)
        except ClientError as error:
            if not error.retriable:
                state.make_unusable(error)
            raise
        state.end(TransactionOutcome.ABORTED)

    async def _end_aborted(self) -> None:
        try:
            await self._requests.end(committed=False)
            self.state.has_started = False
        except BrokerError as error:
            if error.code not in _REFUSED_END:
                raise
            _LOG.info("%s; a new epoch is requested", error)
            self.state.needs_epoch = True
            self.state.has_started = False

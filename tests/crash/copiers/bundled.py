"""The copy loop of `docs/client.md`, with the bundled client."""

from __future__ import annotations

import asyncio
import sys

from odradek.client import (
    ClientError,
    CommitUnknownError,
    Consumer,
    Producer,
    ProducerFencedError,
    Transaction,
    TransactionAbortedError,
    TransactionOutcome,
)
from tests.crash.copiers import (
    BATCH,
    GROUP,
    INPUT,
    OUTPUT,
    REPLACE_ME,
    TRANSACTION_TIMEOUT_MS,
    Attempt,
    Job,
    RecordToCopy,
    attempts,
    next_offsets,
)


class _AbortWantedError(Exception):
    """Aborts the transaction of the block that it leaves."""


def copy(job: Job) -> int:
    """Copy until the producer is fenced, or no broker answers; return the exit status."""
    try:
        asyncio.run(_copy(job))
    except ClientError as error:
        sys.stderr.write(f"{job.name}: {error}\n")
        if not error.retriable and not isinstance(error, ProducerFencedError):
            raise
    return REPLACE_ME


async def _copy(job: Job) -> None:
    async with (
        Consumer(
            job.bootstrap,
            group_id=GROUP,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=job.session_ms,
            heartbeat_interval_ms=job.heartbeat_ms,
            max_poll_records=BATCH,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
        ) as consumer,
        Producer(
            job.bootstrap,
            transactional_id=job.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            linger_ms=1,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
        ) as producer,
    ):
        await consumer.subscribe(INPUT)
        for attempt in attempts(job):
            records = [
                RecordToCopy(record.partition, record.offset, record.value or b"") for record in await consumer.poll()
            ]
            transaction = producer.transaction()
            try:
                await _copy_batch(transaction, producer, consumer, records, attempt)
            except (TransactionAbortedError, _AbortWantedError):
                await _go_back(consumer)
            except CommitUnknownError:
                await _resolve(transaction, consumer)


async def _copy_batch(
    transaction: Transaction,
    producer: Producer[bytes, bytes],
    consumer: Consumer,
    records: list[RecordToCopy],
    attempt: Attempt,
) -> None:
    async with transaction:
        for record in records:
            value = attempt.mark(record.value, len(records))
            await producer.send(OUTPUT, value, partition=record.partition)
        done = {(INPUT, partition): offset for partition, offset in next_offsets(records).items()}
        await transaction.send_offsets(done, consumer)
        if attempt.aborts:
            await producer.flush()  # so that there is something in the log to abort
            raise _AbortWantedError


async def _resolve(transaction: Transaction, consumer: Consumer) -> None:
    """Ask for the outcome of a commit until it is known."""
    while True:
        try:
            if await transaction.outcome() is TransactionOutcome.ABORTED:
                await _go_back(consumer)
        except CommitUnknownError as error:
            if isinstance(error.__cause__, ProducerFencedError):
                raise error.__cause__ from None
        else:
            return


async def _go_back(consumer: Consumer) -> None:
    for partition, committed in (await consumer.committed(consumer.assignment())).items():
        if committed is None:
            await consumer.seek_to_beginning(partition)
        else:
            consumer.seek(partition, committed.offset)

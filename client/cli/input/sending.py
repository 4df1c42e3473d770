"""Send the lines of a descriptor as records, and count the acknowledged and the failed ones."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from time import monotonic

from odradek.client.cli.input.input_record import Parse
from odradek.client.cli.input.lines import read_lines
from odradek.client.cli.input.timed_transactions import TimedTransactions
from odradek.client.cli.output.progress import Progress
from odradek.client.producer.producer import Producer
from odradek.client.record import RecordMetadata
from odradek.protocol.plural import pluralize


class Outcome:
    """Counts of the records that were sent; `error` is the error of the first one that failed."""

    def __init__(self) -> None:
        self.sent = 0
        self.failed = 0
        self.error: BaseException | None = None
        self._pending: list[asyncio.Future[RecordMetadata]] = []

    def add(self, record: asyncio.Future[RecordMetadata]) -> None:
        self.sent += 1
        self._pending.append(record)

    def raise_failure(self) -> None:
        """Raise ValueError if records failed, with their number and the first error."""
        if self.error is not None:
            of = pluralize(self.sent, "record")
            were = "was" if self.failed == 1 else "were"
            raise ValueError(f"{self.failed} of {of} {were} not acknowledged: {self.error}")

    def collect(self) -> int:
        """Count the failures among the records that are done, and drop those records; return their number."""
        before = len(self._pending)
        pending = []
        for record in self._pending:
            if not record.done():
                pending.append(record)
            elif (error := record.exception()) is not None:
                self.failed += 1
                self.error = self.error or error
        self._pending = pending
        return before - len(pending)


async def send_lines(
    producer: Producer,
    topic: str,
    descriptor: int,
    parse: Parse,
    progress: Progress,
    transactions: TimedTransactions,
    *,
    longest_line: int,
) -> Outcome:
    """Send a record for each line, and wait until all are acknowledged. Raises ClientError, LineError, OSError."""
    outcome = Outcome()
    number = 0
    async for lines in _until_due(read_lines(descriptor, longest_line), transactions):
        sent = outcome.sent
        for line in lines:
            number += 1
            if (record := parse(line, number)) is not None:
                key, value, headers, partition, time = record
                if transactions.must_begin:
                    await transactions.begin()
                outcome.add(await producer.send(topic, value, key, partition, headers, time))
        size = sum(map(len, lines)) + len(lines)
        progress.add(outcome.sent - sent, size, progress.bytes + size)
        outcome.collect()
    await producer.flush()
    outcome.collect()
    return outcome


async def _until_due(
    chunks: AsyncGenerator[list[bytes]], transactions: TimedTransactions
) -> AsyncIterator[list[bytes]]:
    """Yield the chunks; commit each transaction when its time is over, also while no line arrives."""
    pending: asyncio.Task[list[bytes] | None] | None = None
    try:
        while True:
            pending = pending or asyncio.create_task(anext(chunks, None))
            left = transactions.ends_at - monotonic()
            done, _ = await asyncio.wait((pending,), timeout=None if left == math.inf else max(0, left))
            if monotonic() >= transactions.ends_at:
                await transactions.commit()
            if done:
                if (lines := pending.result()) is None:
                    return
                pending = None
                yield lines
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait((pending,))

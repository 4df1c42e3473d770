"""Send the lines of a descriptor as records, and count the acknowledged and the failed ones."""

from __future__ import annotations

import asyncio

from odradek.client.cli.input.input_record import Parse
from odradek.client.cli.input.lines import read_lines
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
    producer: Producer, topic: str, descriptor: int, parse: Parse, progress: Progress, *, longest_line: int
) -> Outcome:
    """Send a record for each line, and wait until all are acknowledged. Raises ClientError, LineError, OSError."""
    outcome = Outcome()
    number = 0
    async for lines in read_lines(descriptor, longest_line):
        sent = outcome.sent
        for line in lines:
            number += 1
            if (record := parse(line, number)) is not None:
                key, value, headers, partition, time = record
                outcome.add(await producer.send(topic, value, key, partition, headers, time))
        size = sum(map(len, lines)) + len(lines)
        progress.add(outcome.sent - sent, size, progress.bytes + size)
        outcome.collect()
    await producer.flush()
    outcome.collect()
    return outcome

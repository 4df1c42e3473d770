"""Sending lines of a descriptor as records, and what became of them."""

from __future__ import annotations

import asyncio

from odradek.client.cli.input.input_record import Parse
from odradek.client.cli.input.lines import read_lines
from odradek.client.cli.output.progress import Progress
from odradek.client.producer.producer import Producer
from odradek.client.record import RecordMetadata
from odradek.protocol.plural import pluralize


class Outcome:
    """What became of the records so far; `error` is that of the first that failed."""

    def __init__(self) -> None:
        self.sent = 0
        self.failed = 0
        self.error: BaseException | None = None
        self._waiting: list[asyncio.Future[RecordMetadata]] = []

    def add(self, record: asyncio.Future[RecordMetadata]) -> None:
        self.sent += 1
        self._waiting.append(record)

    def raise_failure(self) -> None:
        """Raises ValueError if a record failed: how many did, and why the first."""
        if self.error is not None:
            of = pluralize(self.sent, "record")
            were = "was" if self.failed == 1 else "were"
            raise ValueError(f"{self.failed} of {of} {were} not acknowledged: {self.error}")

    def look(self) -> int:
        """Count those that are done, and forget them; return how many they were."""
        before = len(self._waiting)
        waiting = []
        for record in self._waiting:
            if not record.done():
                waiting.append(record)
            elif (error := record.exception()) is not None:
                self.failed += 1
                self.error = self.error or error
        self._waiting = waiting
        return before - len(waiting)


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
        outcome.look()
    await producer.flush()
    outcome.look()
    return outcome

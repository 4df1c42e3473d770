"""Sending lines of a descriptor as records, and what became of them."""

from __future__ import annotations

import asyncio

from client.cli.input_record import Parse
from client.cli.lines import read_lines
from client.cli.progress import Progress
from client.producer import Producer
from client.record import RecordMetadata


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


async def send_lines(producer: Producer, topic: str, descriptor: int, parse: Parse, progress: Progress) -> Outcome:
    """Send a record for each line, and wait until all are acknowledged. Raises ClientError, LineError, OSError."""
    outcome = Outcome()
    async for lines in read_lines(descriptor):
        for line in lines:
            key, value, headers, partition, time = parse(line, outcome.sent + 1)
            outcome.add(await producer.send(topic, value, key, partition, headers, time))
        size = sum(map(len, lines)) + len(lines)
        progress.add(len(lines), size, progress.bytes + size)
        outcome.look()
    await producer.flush()
    outcome.look()
    return outcome

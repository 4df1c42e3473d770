"""The loop of `consume`: read records of a range or of a group, and print those that pass the filter.

Partitions are either assigned, each with a start and perhaps an end, or they are those that the group assigns to this
member; reading them starts at the committed offsets and has no end.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Mapping, Sequence

from odradek.client.cli.output.progress import Progress
from odradek.client.cli.output.record_formats import Format
from odradek.client.cli.output.terminal import is_terminal
from odradek.client.cli.reading_range import Bounds, ReadingRange, find_bounds
from odradek.client.cli.record_filter import Condition
from odradek.client.consumer.consumer import Consumer
from odradek.client.record import ConsumerRecord, TopicPartition
from odradek.protocol.plural import pluralize

_CHUNK = 500  # records that are printed at once
_LOOK_MS = 100
"""The interval in which positions are compared with the ends while no record arrives. A partition may end in control
records, which the consumer does not return."""


class Reading:
    """One run of `consume`; `count` is the number of printed records."""

    def __init__(
        self, consumer: Consumer, wanted: ReadingRange, conditions: Sequence[Condition], output_format: Format
    ) -> None:
        self.count = 0
        self._consumer = consumer
        self._wanted = wanted
        self._conditions = conditions
        self._format = output_format
        self._has_end = not wanted.follows or wanted.to_offset is not None or wanted.to_timestamp is not None
        self._ends: dict[TopicPartition, int] = {}  # of the assigned partitions that are still read
        self._is_member = False
        self._commits = False
        self._read = 0  # records, with those that the filter removed
        self._progress = Progress(is_shown=False)

    async def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions. Raises ClientError."""
        bounds = await find_bounds(self._consumer, partitions, self._wanted)
        self._ends = {partition: bound.end for partition, bound in bounds.items() if bound.size != 0}
        self._consumer.assign(self._ends)
        for partition in self._ends:
            self._consumer.seek(partition, bounds[partition].start)
        self._progress = _progress(bounds)

    async def subscribe(self, topic: str, *, commits: bool) -> None:
        """Read the partitions of a topic that the group assigns to the consumer. Raises ClientError.

        `commits` says whether the consumer commits automatically, which is its default.
        """
        await self._consumer.subscribe([topic])
        self._is_member = True
        self._commits = commits

    async def run(self, begin: Awaitable[None], max_messages: int | None, timeout_ms: int | None) -> None:
        """Await `begin`, one of the two above, and print records until the end. Raises ClientError, OSError.

        A consumer that commits automatically commits when it is closed, but not after an exception such as that of
        Ctrl-C. After Ctrl-C all records that were read have been printed, so this method commits them. Records that
        could not be printed are not committed.
        """
        try:
            await begin
            await self._print(max_messages, timeout_ms)
        except asyncio.CancelledError:
            if self._commits:
                await self._consumer.commit()
            raise
        finally:
            self._progress.clear()
            print(f"Processed a total of {pluralize(self.count, 'message')}", file=sys.stderr)

    async def _print(self, max_messages: int | None, timeout_ms: int | None) -> None:
        timeout = None if timeout_ms is None else timeout_ms / 1000
        last_record_at = time.monotonic()
        while (self._ends or self._is_member) and (max_messages is None or self.count < max_messages):
            waited = time.monotonic() - last_record_at
            if timeout is not None and waited >= timeout:
                break
            left = None if max_messages is None else max_messages - self.count
            if await self._step(left, None if timeout is None else (timeout - waited) * 1000):
                last_record_at = time.monotonic()

    async def _step(self, left: int | None, timeout_ms: float | None) -> bool:
        """Print the next records, `left` at most; return whether any arrived, even if the filter removed them all."""
        if self._has_end:
            timeout_ms = _LOOK_MS if timeout_ms is None else min(_LOOK_MS, timeout_ms)
        # A member reads no more records than it may print, because it commits what it reads.
        limit = _CHUNK if left is None or (self._conditions and not self._is_member) else min(left, _CHUNK)
        records = await self._consumer.poll(timeout_ms, limit)
        wanted = await self._within_bounds(records) if self._has_end else records
        if self._conditions:
            wanted = [record for record in wanted if all(holds(record) for holds in self._conditions)][:left]
        out = b"".join(map(self._format, wanted))
        if out:
            sys.stdout.buffer.write(out)
            sys.stdout.buffer.flush()
        self.count += len(wanted)
        self._read += len(records)
        self._progress.add(len(wanted), len(out), self._read)
        return bool(records)

    async def _within_bounds(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return the records before the ends of their partitions; pause partitions that have reached their end."""
        before = self._wanted.to_timestamp
        wanted = []
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            end = self._ends.get(partition)
            if end is None:
                continue
            if record.offset >= end or (before is not None and record.timestamp >= before):
                self._finish(partition)
            else:
                wanted.append(record)
        for partition, end in list(self._ends.items()):
            if await self._consumer.position(partition) >= end:
                self._finish(partition)
        return wanted

    def _finish(self, partition: TopicPartition) -> None:
        del self._ends[partition]
        self._consumer.pause(partition)


def _progress(bounds: Mapping[TopicPartition, Bounds]) -> Progress:
    sizes = [bound.size for bound in bounds.values()]
    known = [size for size in sizes if size is not None]
    total = sum(known) if len(known) == len(sizes) else None
    return Progress(total, is_shown=not is_terminal(sys.stdout))

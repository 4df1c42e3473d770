"""Reading partitions from where one begins to where one ends, and printing what passes the filter.

Partitions are assigned by hand and have a beginning and perhaps an end; or they are those that a group gives to this
member, from the offsets that it has committed on, without an end.
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

_CHUNK = 500  # records that are printed at once
_LOOK_MS = 100
"""How often positions are looked at while no record comes: a partition may end in records that are not for users."""


class Reading:
    """One run of `consume`; `count` is how many records were printed."""

    def __init__(
        self, consumer: Consumer, wanted: ReadingRange, conditions: Sequence[Condition], output_format: Format
    ) -> None:
        self.count = 0
        self._consumer = consumer
        self._wanted = wanted
        self._conditions = conditions
        self._format = output_format
        self._has_end = not wanted.follows or wanted.to_offset is not None or wanted.to_timestamp is not None
        self._ends: dict[TopicPartition, int] = {}  # of the partitions that are still read, by hand
        self._is_member = False
        self._commits = False
        self._read = 0  # records, wanted or not
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
        """Read what the consumer's group gives it of a topic. Raises ClientError.

        `commits` is whether the consumer commits by itself, as it does unless it is told otherwise.
        """
        await self._consumer.subscribe([topic])
        self._is_member = True
        self._commits = commits

    async def run(self, begin: Awaitable[None], max_messages: int | None, timeout_ms: int | None) -> None:
        """Await `begin`, one of the two above, and print records until an end is reached. Raises ClientError, OSError.

        A consumer that commits by itself does so when it is closed, but not after an exception, such as that of Ctrl-C.
        All that was read has been printed then, so it is committed here. What could not be printed is not.
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
            print(f"Processed a total of {self.count} messages", file=sys.stderr)

    async def _print(self, max_messages: int | None, timeout_ms: int | None) -> None:
        patience = None if timeout_ms is None else timeout_ms / 1000
        heard_at = time.monotonic()
        while (self._ends or self._is_member) and (max_messages is None or self.count < max_messages):
            silent_for = time.monotonic() - heard_at
            if patience is not None and silent_for >= patience:
                break
            left = None if max_messages is None else max_messages - self.count
            if await self._step(left, None if patience is None else (patience - silent_for) * 1000):
                heard_at = time.monotonic()

    async def _step(self, left: int | None, patience_ms: float | None) -> bool:
        """Print what comes next, `left` records at most; return whether a record came, wanted or not."""
        if self._has_end:
            patience_ms = _LOOK_MS if patience_ms is None else min(_LOOK_MS, patience_ms)
        # A member reads no more than it may print: what is read is committed.
        limit = _CHUNK if left is None or (self._conditions and not self._is_member) else min(left, _CHUNK)
        records = await self._consumer.poll(patience_ms, limit)
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
        """Those of the records that lie before the ends; partitions that are at theirs are read no more."""
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

"""The assigned partitions of a consumer, and the position and buffered records of each.

```
offset   0 ........ position ............. fetch_offset ........ high_watermark
                    |  fetched, but not       |  not fetched yet
                    |  returned (`buffered`)  |
```
`position` is the offset of the next record for the user, or None until it was looked up or sought. `fetch_offset` is
the offset of the next fetch. A seek sets both and discards the buffer; `seek_count` identifies the response to a fetch
from before the seek, which is discarded as well.

Each offset is stored with the leader epoch of the record before it, so that a later leader can check whether its log
has that record (KIP-320).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from odradek.client.consumer.completed_fetch import CompletedFetch
from odradek.client.errors import ClientError, ConfigurationError
from odradek.client.network.backoff import Backoff
from odradek.client.record import CommittedOffset, ConsumerRecord, Partition, TopicPartition

MAX_BUFFERED = 2
"""Fetches in the buffer of a partition: one that is being read, and the next one."""


class PartitionState:
    """One assigned partition."""

    __slots__ = (
        "backoff",
        "buffered",
        "error",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "is_paused",
        "not_before",
        "partition",
        "position",
        "position_epoch",
        "seek_count",
        "validated_epoch",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.position: int | None = None
        self.position_epoch = -1  # of the record before the position; -1: not known
        self.fetch_offset: int | None = None
        self.fetch_epoch = -1  # of the record before the fetch offset; -1: not known
        self.validated_epoch = -1  # of the newest leader whose log is known to have that record
        self.seek_count = 0
        self.buffered: deque[CompletedFetch] = deque()
        self.high_watermark = -1  # in the last response; -1: none yet
        self.is_paused = False
        self.error: ClientError | None = None  # raised by the next poll; nothing is fetched until then
        self.backoff: Backoff | None = None  # after a failure, until the next success
        self.not_before = 0.0  # time of the event loop before which it is not fetched

    def seek(self, offset: int | None, leader_epoch: int = -1) -> None:
        """Continue at `offset`, after a record of `leader_epoch`; None: as `auto_offset_reset` says."""
        self.seek_count += 1
        self.position = self.fetch_offset = offset
        self.position_epoch = self.fetch_epoch = leader_epoch
        self.validated_epoch = -1
        self.buffered.clear()
        self.error = None
        self.backoff = None
        self.not_before = 0.0

    def is_fetchable(self, now: float) -> bool:
        """Whether the next fetch may include it: no error, no backoff, and room in the buffer."""
        return (
            self.fetch_offset is not None
            and not self.is_paused
            and self.error is None
            and now >= self.not_before
            and len(self.buffered) < MAX_BUFFERED
        )

    def needs_validation(self, leader_epoch: int) -> bool:
        """Whether the leader of this epoch may lack records that were read (see `position_validation`)."""
        return self.fetch_epoch >= 0 and self.validated_epoch < leader_epoch

    def is_full(self) -> bool:
        """Whether only the user can make room in its buffer."""
        return len(self.buffered) >= MAX_BUFFERED and not self.is_paused

    def add(self, fetched: CompletedFetch, leader_epoch: int) -> None:
        """Buffer a fetch from `fetch_offset`, by the leader of this epoch."""
        self.buffered.append(fetched)
        self.fetch_offset = fetched.next_offset
        self.fetch_epoch = fetched.last_epoch
        self.validated_epoch = leader_epoch

    def next_record(self) -> ConsumerRecord | None:
        """Return the next record and move the position past it; None at the end of a fetch.

        Raises CorruptRecordsError: the position stays before the corrupt batch, and the buffer is discarded.
        """
        if not self.buffered:
            return None
        try:
            record = next(self.buffered[0].records, None)
        except ClientError:
            self.seek(self.position, self.position_epoch)
            raise
        if record is None:
            self._finish_fetch(self.buffered.popleft())
            return None
        self.position = record.offset + 1
        self.position_epoch = record.leader_epoch
        return record

    def take(self, count: int) -> list[ConsumerRecord]:
        """Return up to `count` records and move the position past them; fewer at the end of a fetch.

        A corrupt batch ends the list, or raises if it comes first.
        """
        records: list[ConsumerRecord] = []
        if not self.buffered:
            return records
        fetch = self.buffered[0]
        try:
            records.extend(islice(fetch.records, count))
        except ClientError:
            if not records:
                self.seek(self.position, self.position_epoch)
                raise
            self.seek(records[-1].offset + 1, records[-1].leader_epoch)
            return records
        if len(records) < count:
            self._finish_fetch(self.buffered.popleft())
        else:
            self.position = records[-1].offset + 1
            self.position_epoch = records[-1].leader_epoch
        return records

    def lag(self) -> int | None:
        """The number of offsets from the position to the high watermark; None before the first response."""
        if self.position is None or self.high_watermark < 0:
            return None
        return max(0, self.high_watermark - self.position)

    def _finish_fetch(self, fetched: CompletedFetch) -> None:
        """Move the position past a fetch, also past records that are skipped."""
        self.position = fetched.next_offset
        self.position_epoch = fetched.last_epoch


class SubscriptionState:
    """The assigned partitions of one consumer, in the order in which their records are returned next."""

    def __init__(self) -> None:
        self.states: dict[TopicPartition, PartitionState] = {}
        self.current: PartitionState | None = None  # whose records are being returned (`fetch_collector`)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that were assigned before keep their state."""
        before = self.states
        self.states = {}
        for partition in partitions:
            self.states[partition] = before.get(partition) or PartitionState(partition)

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition. Raises ConfigurationError for another."""
        state = self.states.get(partition)
        if state is None:
            raise ConfigurationError(
                "use a partition",
                "it is not assigned",
                "Call assign() first",
                topic=partition[0],
                partition=partition[1],
            )
        return state

    def consumed_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """The offsets to commit: the position of each of these partitions that has one."""
        return {
            partition: CommittedOffset(state.position, state.position_epoch)
            for partition in partitions
            if (state := self.states.get(partition)) is not None and state.position is not None
        }

    def chosen(self, partitions: Iterable[Partition]) -> list[PartitionState]:
        """The states of these partitions, or of all if there are none. Raises ConfigurationError."""
        chosen = [self.state(TopicPartition(*partition)) for partition in partitions]
        return chosen or list(self.states.values())

    def seek(self, state: PartitionState, offset: int) -> None:
        """Set the position of a partition, and return no record of it that was fetched before."""
        state.seek(offset)
        if self.current is state:
            self.current = None

    def topics(self) -> set[str]:
        return {partition.topic for partition in self.states}

    def partitions_without_position(self) -> list[PartitionState]:
        """The partitions whose position must be looked up."""
        return [state for state in self.states.values() if state.position is None and state.error is None]

    def next_with_records(self) -> PartitionState | None:
        """The first partition with records to return, or None."""
        return next((state for state in self.states.values() if state.buffered and not state.is_paused), None)

    def move_to_end(self, state: PartitionState) -> None:
        """Move a partition behind the others."""
        if state.partition in self.states:
            self.states[state.partition] = self.states.pop(state.partition)

"""One partition on this broker: its leader, its high watermark, and the checks before reads and writes.

```
log start offset      last stable offset      high watermark      log end offset
  │ every consumer may read │ read_uncommitted may │ followers may   │
```

Between calls:
- `leader_epoch` and `isr` are those of the newest image applied.
- `high_watermark` never falls while this broker leads. It is the smallest log end offset among the in-sync replicas.
  This broker's own offset counts appended records, and if flush.messages demands it, only synced ones. With a single
  replica the high watermark follows each append at once.

Used on the event loop only. Appends go through the `LogAppender`, which keeps their order; readers get slices of the
file. Kafka's `Partition` is the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, ParamSpec, TypeVar

from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metrics.counts.metrics import TopicMetrics
from odradek.broker.replication.disk_threads import DiskThreads
from odradek.broker.replication.isr import effective_min_insync, high_watermark
from odradek.broker.replication.log_appender import LogAppender
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_slice import LogSlice
from odradek.protocol.errors import ErrorCode, KafkaError

P = ParamSpec("P")
T = TypeVar("T")

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
ACKS_ALL: Final = -1
UP_TO_HIGH_WATERMARK: Final = -1

_REMOVED_AT_ONCE: Final = 5000  # producers; this takes a millisecond


class FetchedRecords:
    """The result of a read; without records if the fetcher's log diverged, at `diverging_epoch` (epoch, end offset)."""

    __slots__ = ("diverging_epoch", "high_watermark", "last_stable_offset", "log_start_offset", "records")

    def __init__(
        self,
        records: LogSlice | bytes,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        diverging_epoch: tuple[int, int] | None = None,
    ) -> None:
        self.records = records
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch


class Partition:
    """A replica of one partition. `on_advance` is called when the high watermark has moved."""

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        log: Log,
        *,
        node_id: int,
        metrics: TopicMetrics,
        threads: DiskThreads,
        on_advance: Callable[[Partition], None],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.metrics = metrics
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: Mapping[int, int] = {}
        self.offline = False
        self._node_id = node_id
        self._partition_epoch = -1
        self.high_watermark = log.high_watermark
        self._end_offsets = {node_id: log.log_end_offset}
        self._is_alone = False
        self._on_advance = on_advance
        self._threads = threads
        self._appender = LogAppender(log, threads, self._appended)

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} leader {self.leader} epoch {self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        return self.leader == self._node_id

    def configure(self, config: LogConfig) -> None:
        """Set new properties of the log, effective from the next operation on."""
        self.log.configure(config)
        self._appender.flush_messages = config.flush_messages

    def apply(self, image: PartitionImage) -> bool:
        """Apply the state in the image; return whether the leader or its epoch has changed."""
        if image.leader_epoch < self.leader_epoch or image.partition_epoch < self._partition_epoch:
            return False
        changed = (image.leader, image.leader_epoch) != (self.leader, self.leader_epoch)
        if changed:
            # End offsets that followers reported in another epoch do not hold in this one.
            self._end_offsets = {n: end for n, end in self._end_offsets.items() if n == self._node_id}
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.replicas = tuple(image.replicas)
        self.isr = image.isr
        self._is_alone = image.isr.keys() == {self._node_id}
        self._partition_epoch = image.partition_epoch
        self._advance_high_watermark()
        return changed

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Check that this broker leads, and in the epoch of the request (negative: the request has none).

        Raises KafkaError FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR.
        """
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk under {self.topic}-{self.index} has failed")
        if current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            fenced = current_leader_epoch < self.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, the request has {current_leader_epoch}")
        if self.leader != self._node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{self.index} is led by {self.leader}")

    def check_follower(self, replica_id: int, current_leader_epoch: int) -> None:
        """Check that the broker that fetches holds a replica of this partition.

        Raises KafkaError UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER if the request has no epoch: this broker's
        image may be the older one.
        """
        if replica_id not in self.replicas:
            has_epoch = current_leader_epoch >= 0
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {replica_id} has no replica of {self.topic}-{self.index}")

    def append_as_leader(
        self, records: memoryview, required_acks: int, now_ms: int
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one batch in place (see `Log.append_as_leader`). Returns a future if the append did not end at once.

        Checks `required_acks` before the append; `acknowledgement` checks it afterwards. Raises KafkaError.
        """
        if self.leader != self._node_id or self.offline:
            self.check_leader()
        if required_acks == ACKS_ALL and not self._enough_in_sync():
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"in sync: {sorted(self.isr)}")
        return self._appender.append_as_leader(records, self.leader_epoch, now_ms)

    def acknowledgement(self, next_offset: int, leader_epoch: int) -> ErrorCode | None:
        """The error code for a producer with acks=-1 whose records end before `next_offset`; None if it must wait.

        `leader_epoch` is the epoch in which they were appended.
        """
        if self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if not self.is_leader or self.leader_epoch != leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < next_offset:
            return None
        return ErrorCode.NONE if self._enough_in_sync() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def readable_end_offset(self, *, read_committed: bool) -> int:
        """The offset (exclusive) up to which consumers may read."""
        return self.log.last_stable_offset if read_committed else self.high_watermark

    def read_for_fetch(
        self,
        fetch_offset: int,
        max_bytes: int,
        minimum_one_batch: bool,
        read_committed: bool,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> FetchedRecords:
        """Read from the batch that contains `fetch_offset`, up to the end that consumers may read.

        Raises KafkaError OFFSET_OUT_OF_RANGE and those of `check_leader`. The caller owns the slice and releases it.
        """
        if current_leader_epoch >= 0 or self.leader != self._node_id or self.offline:
            self.check_leader(current_leader_epoch)
        high_watermark = self.high_watermark
        log = self.log
        stable = log.last_stable_offset
        start = log.log_start_offset
        if last_fetched_epoch >= 0:
            diverging = self._divergence(last_fetched_epoch, fetch_offset)
            if diverging is not None:
                return FetchedRecords(b"", high_watermark, stable, start, diverging)
        end = stable if read_committed else high_watermark
        if not start <= fetch_offset <= log.log_end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"offset {fetch_offset} is not in {start} to {log.log_end_offset}"
            )
        if fetch_offset >= end or (max_bytes <= 0 and not minimum_one_batch):
            return FetchedRecords(b"", high_watermark, stable, start)
        return FetchedRecords(log.read(fetch_offset, max_bytes, end, minimum_one_batch), high_watermark, stable, start)

    def end_offset_for_epoch(self, leader_epoch: int, current_leader_epoch: int = NO_EPOCH) -> tuple[int, int]:
        """The largest epoch not above `leader_epoch` and the offset after its last record; (-1, -1) if there is none.

        Raises KafkaError as `check_leader` does.
        """
        self.check_leader(current_leader_epoch)
        if leader_epoch == self.leader_epoch:
            # The log stores an epoch with its first batch. Until then the epoch is empty and ends where it starts.
            return leader_epoch, self.log.log_end_offset
        return self.log.end_offset_for_epoch(leader_epoch)

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a search in the log on a search thread."""
        return self._threads.search(function, *args, **kwargs)

    def roll(self) -> asyncio.Future[None]:
        """Start a new segment of the log, in order with appends; the future raises KafkaError."""
        return self._appender.run_between_appends(self.log.roll)

    async def delete_records(self, offset: int) -> int:
        """Raise the log start offset to `offset`, -1 for the high watermark, and return the new log start offset.

        Raises KafkaError OFFSET_OUT_OF_RANGE beyond the high watermark, POLICY_VIOLATION for a topic that is compacted
        only, and those of `check_leader`.
        """
        self.check_leader()
        if self.log.config.cleanup_policy == {"compact"}:
            # Any record of a compacted log may be the last of its key.
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"the cleanup.policy of {self.topic} is compact, without delete"
            )
        if offset == UP_TO_HIGH_WATERMARK:
            offset = self.high_watermark
        if offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"there is no offset {offset}")
        await self._appender.run_between_appends(self.log.update_log_start_offset, offset)
        return self.log.log_start_offset

    def flush_if_due(self) -> asyncio.Future[None] | None:
        """Start a flush if the topic's flush.ms demands one by now; return its future, or None."""
        return self._appender.flush_if_due()

    async def forget_expired_producers(self) -> None:
        """Remove producers that have not written for producer.id.expiration.ms.

        A search through a million of them takes half a second, so it runs on a writer thread, in parts between appends.
        """
        producers = self.log.producers
        if not producers.is_crowded and not self.is_busy:
            self.log.remove_expired_producers()
            return
        for part in await self._appender.run_between_appends(producers.ids_in_parts, _REMOVED_AT_ONCE):
            await self._appender.run_between_appends(self.log.remove_expired_producers, part)

    def resign(self) -> None:
        """Refuse appends and reads from now on: this replica is about to be removed."""
        self.leader = NO_LEADER

    @property
    def is_busy(self) -> bool:
        """Return whether an append or a flush is running, for which `drained` would wait."""
        return self._appender.is_busy

    async def drained(self) -> None:
        """Wait until it is not busy; the caller ensures that no new append comes."""
        await self._appender.drained()

    def _divergence(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        epoch, end_offset = self.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or fetch_offset < self.log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {last_fetched_epoch} is unknown")
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None

    def _enough_in_sync(self) -> bool:
        if len(self.isr) >= len(self.replicas):  # the property cannot demand more, so it is not looked up
            return True
        return len(self.isr) >= effective_min_insync(self.log.config.min_insync_replicas, len(self.replicas))

    def _appended(self, info: AppendInfo) -> None:
        if not info.duplicate:
            self._end_offsets[self._node_id] = info.last_offset + 1
            self._advance_high_watermark()

    def _advance_high_watermark(self) -> None:
        if self.leader != self._node_id:
            return
        ends = self._end_offsets
        new = ends[self._node_id] if self._is_alone else high_watermark(self.isr, ends)
        if new > self.high_watermark:
            self.log.advance_high_watermark(new)
            self.high_watermark = new
            self._on_advance(self)

"""One partition on this broker: its leader, its high watermark, and the checks before reads and writes.

```
log start offset      last stable offset      high watermark      log end offset
  │ every consumer may read │ read_uncommitted may │ followers may   │
```

Between calls:
- `leader_epoch` and `isr` are those of the newest image applied. `proposed_isr` is a change of the ISR that is on its
  way to the metadata store; until an image answers it, the *maximal* ISR counts: committed and proposed members.
- `high_watermark` never falls while this broker leads. It is the smallest log end offset of the maximal ISR and of
  caught-up replicas that are about to join it; it does not move while there are eligible leader replicas, or fewer in
  sync than min.insync.replicas (KIP-966). This broker's own offset counts appended records, and if flush.messages
  demands it, only synced ones. With a single replica the high watermark follows each append at once.
- While this broker leads, the leader epoch begins at `epoch_start_offset`, the end of the log when it became leader,
  and is known to the log also without a batch. Followers that have not fetched since then count as empty.

Clients are served after `check_serving` only, because another broker may lead by now (`fencing`); followers always.

As a follower it has the leader's high watermark, and the log is written by `follower` alone, between appends. On a
change to follower, appends that wait in the queue fail, and the follower begins after `drained`.

Used on the event loop only. Appends go through the `LogAppender`, which keeps their order; readers get slices of the
file. Kafka's `Partition` is the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, ParamSpec, TypeVar

from odradek.broker.metadata.image import PartitionImage
from odradek.broker.metrics.counts.metrics import TopicMetrics
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LogAppender
from odradek.broker.replication.fencing import Fencing
from odradek.broker.replication.fetch.fetched_records import FetchedRecords
from odradek.broker.replication.followers import Followers
from odradek.broker.replication.isr import effective_min_insync
from odradek.broker.replication.partition_events import PartitionEvents
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.producers.verification_state import Verification
from odradek.protocol.errors import ErrorCode, KafkaError

P = ParamSpec("P")
T = TypeVar("T")

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
ACKS_ALL: Final = -1
NO_REPLICA: Final = -1
NO_OFFSET: Final = -1


class Partition:
    """A replica of one partition."""

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
        followers: Followers,
        events: PartitionEvents,
        fencing: Fencing | None = None,
    ) -> None:
        """`fencing`: None for a broker that is alone."""
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.metrics = metrics
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: Mapping[int, int] = {}
        self.proposed_isr: Mapping[int, int] | None = None
        self.image: PartitionImage | None = None
        self.epoch_start_offset = NO_OFFSET
        self.offline = False
        self._node_id = node_id
        self._partition_epoch = -1
        self.high_watermark = log.high_watermark
        self._own_end = log.log_end_offset
        self._is_alone = False
        self.followers = followers
        self._fencing = fencing
        self._events = events
        self._on_advance = events.advanced  # a plain attribute, because every append reads it
        self._threads = threads
        self.appender = LogAppender(log, threads, self._appended)

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index} leader {self.leader} epoch {self.leader_epoch}>"

    @property
    def is_leader(self) -> bool:
        return self.leader == self._node_id

    def configure(self, config: LogConfig) -> None:
        """Set new properties of the log, effective from the next operation on."""
        self.log.configure(config)
        self.appender.flush_messages = config.flush_messages

    def apply(self, image: PartitionImage) -> bool:
        """Apply the state in the image; return whether the leader or its epoch has changed."""
        if image.leader_epoch < self.leader_epoch or image.partition_epoch < self._partition_epoch:
            return False
        changed = (image.leader, image.leader_epoch) != (self.leader, self.leader_epoch)
        if changed or image.partition_epoch > self._partition_epoch:
            self.proposed_isr = None  # it was committed, or its transaction compares a state that is gone
        if not self.is_leader and not self.appender.waits_for_flush:
            self._own_end = NO_OFFSET  # a follower's log may have been truncated
        self.image = image
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.replicas = tuple(image.replicas)
        self.isr = image.isr
        self._partition_epoch = image.partition_epoch
        self._is_alone = len(self.replicas) == 1 and image.isr.keys() == {self._node_id}
        if not self.is_leader:
            self.appender.leader_epoch = NO_EPOCH
            self.epoch_start_offset = NO_OFFSET
        elif changed:
            self._lead()
        elif not self._is_alone:
            self.followers.assign(self.replicas, self.isr)
        self._advance_high_watermark()
        return changed

    def follow_high_watermark(self, high_watermark: int) -> None:
        """Take the leader's high watermark, as far as the log reaches; it falls only with the end of the log."""
        self.log.advance_high_watermark(max(high_watermark, self.high_watermark))
        self.high_watermark = self.log.high_watermark

    def propose_isr(self, isr: Mapping[int, int] | None) -> None:
        """Set the ISR that is proposed to the metadata store; None if it was refused for certain."""
        self.proposed_isr = isr
        self._advance_high_watermark()

    def check_leader(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Check that this broker leads, and in the epoch of the request (-1: the request has none).

        Raises KafkaError FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER or KAFKA_STORAGE_ERROR.
        """
        if self.offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk under {self.topic}-{self.index} has failed")
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            fenced = current_leader_epoch < self.leader_epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if fenced else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(code, f"the leader epoch is {self.leader_epoch}, the request has {current_leader_epoch}")
        if self.leader != self._node_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.topic}-{self.index} is led by {self.leader}")

    @property
    def is_fenced(self) -> bool:
        """Whether clients must be refused, because another broker may lead by now."""
        fencing = self._fencing
        return (
            fencing is not None
            and fencing.has_lapsed()
            and not fencing.is_vouched_for(self.replicas, self.maximal_isr(), self.followers)
        )

    def check_serving(self, current_leader_epoch: int = NO_EPOCH) -> None:
        """Check before an answer to a client: as `check_leader`, and NOT_LEADER_OR_FOLLOWER if it is fenced."""
        self.check_leader(current_leader_epoch)
        if self._fencing is not None:
            self._check_fencing()

    def _check_fencing(self) -> None:
        if self.is_fenced:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"another broker may lead {self.topic}-{self.index}: the session ended",
            )

    def check_follower(self, replica_id: int, current_leader_epoch: int) -> None:
        """Check that the broker that fetches holds a replica of this partition.

        Raises KafkaError UNKNOWN_LEADER_EPOCH, or NOT_LEADER_OR_FOLLOWER if the request has no epoch: this broker's
        image may be the older one.
        """
        if replica_id not in self.replicas:
            has_epoch = current_leader_epoch >= 0
            code = ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(code, f"broker {replica_id} has no replica of {self.topic}-{self.index}")

    def record_follower_fetch(
        self, replica_id: int, broker_epoch: int, leader_epoch: int, fetch_offset: int, log_start_offset: int
    ) -> None:
        """Record that a follower has everything below `fetch_offset`: it may move the high watermark or join the ISR.

        Does nothing with another leader epoch, or another broker epoch than the registered one. The caller has read for
        the fetch: it did not diverge, and its offset is in the log.
        """
        if leader_epoch != self.leader_epoch or self.leader != self._node_id:
            return
        end = self.log.log_end_offset
        if self.followers.record(replica_id, broker_epoch, fetch_offset, log_start_offset, end) is None:
            return
        if (
            replica_id not in self.isr
            and self.proposed_isr is None
            and self.followers.may_join(replica_id, self.high_watermark, self.epoch_start_offset)
        ):
            self._events.may_join(self, replica_id)
        self._advance_high_watermark()
        self._events.followed(self)

    def lagging_replicas(self) -> set[int]:
        """The members of the ISR that should leave it now; none while a change is proposed.

        Moves the high watermark first, which may have waited for a replica that joins no more.
        """
        if self.leader != self._node_id or self._is_alone or self.proposed_isr is not None:
            return set()
        self._advance_high_watermark()
        return self.followers.lagging(self.isr, self.log.log_end_offset)

    def maximal_isr(self) -> set[int]:
        """The committed members of the ISR, and the proposed ones."""
        return set(self.isr) if self.proposed_isr is None else {*self.isr, *self.proposed_isr}

    def append_as_leader(
        self,
        records: memoryview,
        required_acks: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
        verification: Verification | None = None,
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one batch in place (see `Log.append_as_leader`). Returns a future if the append did not end at once.

        Checks `required_acks` before the append; `acknowledgement` checks it afterwards. Raises KafkaError.
        """
        if self.leader != self._node_id or self.offline:
            self.check_leader()
        if self._fencing is not None:
            self._check_fencing()
        if required_acks == ACKS_ALL and not self._enough_in_sync():
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, f"in sync: {sorted(self.isr)}")
        return self.appender.append_as_leader(
            records, self.leader_epoch, now_ms, origin, transaction_version, verification
        )

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
        if self._fencing is not None and self.is_fenced:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE if self._enough_in_sync() else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    @property
    def has_reached_epoch_start(self) -> bool:
        """Whether the high watermark has reached the start of the leader epoch, where other leaders' records end."""
        return self._is_alone or self.high_watermark >= self.epoch_start_offset > NO_OFFSET

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
        replica_id: int = NO_REPLICA,
    ) -> FetchedRecords:
        """Read from the batch that contains `fetch_offset`, up to the end that consumers may read; a replica reads all.

        Raises KafkaError OFFSET_OUT_OF_RANGE and those of `check_serving`, or for a replica `check_leader`. The caller
        owns the slice and releases it.
        """
        if current_leader_epoch >= 0 or self.leader != self._node_id or self.offline:
            self.check_leader(max(NO_EPOCH, current_leader_epoch))  # for Kafka's Fetch all below 0 are none
        if replica_id < 0 and self._fencing is not None:
            self._check_fencing()
        high_watermark, log = self.high_watermark, self.log
        stable, start = log.last_stable_offset, log.log_start_offset
        if last_fetched_epoch >= 0:
            diverging = self._divergence(last_fetched_epoch, fetch_offset)
            if diverging is not None:
                return FetchedRecords(b"", high_watermark, stable, start, diverging)
        end = stable if read_committed else high_watermark
        if replica_id >= 0:
            end = log.log_end_offset
        if not start <= fetch_offset <= log.log_end_offset:
            detail = f"offset {fetch_offset} is not in {start} to {log.log_end_offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, detail)
        if fetch_offset >= end or (max_bytes <= 0 and not minimum_one_batch):
            return FetchedRecords(b"", high_watermark, stable, start)
        return FetchedRecords(log.read(fetch_offset, max_bytes, end, minimum_one_batch), high_watermark, stable, start)

    def end_offset_for_epoch(self, leader_epoch: int, current_leader_epoch: int = NO_EPOCH) -> tuple[int, int]:
        """The largest epoch not above `leader_epoch` and the offset after its last record; (-1, -1) if there is none.

        Raises KafkaError as `check_serving` does.
        """
        self.check_serving(current_leader_epoch)
        return self._end_of_epoch(leader_epoch)

    def _end_of_epoch(self, leader_epoch: int) -> tuple[int, int]:
        if leader_epoch == self.leader_epoch:
            # The log stores an epoch with its first batch. Until then the epoch is empty and ends where it starts.
            return leader_epoch, self.log.log_end_offset
        return self.log.end_offset_for_epoch(leader_epoch)

    def search(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Run a search in the log on a search thread."""
        return self._threads.search(function, *args, **kwargs)

    def roll(self) -> asyncio.Future[None]:
        """Start a new segment of the log, in order with appends; the future raises KafkaError."""
        return self.appender.run_between_appends(self.log.roll)

    def resign(self) -> None:
        """Refuse appends and reads from now on: this replica is about to be removed."""
        self.leader = NO_LEADER
        self.appender.resign()

    def _divergence(self, last_fetched_epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        epoch, end_offset = self._end_of_epoch(last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or fetch_offset < self.log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"epoch {last_fetched_epoch} is unknown")
        return (epoch, end_offset) if epoch < last_fetched_epoch or end_offset < fetch_offset else None

    def _enough_in_sync(self) -> bool:
        if len(self.isr) >= len(self.replicas):  # the property cannot demand more, so it is not looked up
            return True
        return len(self.isr) >= effective_min_insync(self.log.config.min_insync_replicas, len(self.replicas))

    def _lead(self) -> None:
        """Begin to lead: the epoch begins behind everything that was appended in earlier ones."""
        self.epoch_start_offset = NO_OFFSET
        self.followers.begin_epoch(self.replicas, self.isr)
        self.appender.begin_epoch(self.leader_epoch, len(self.replicas) > 1, self._epoch_began)

    def _epoch_began(self, leader_epoch: int, start_offset: int) -> None:
        if leader_epoch != self.leader_epoch or self.leader != self._node_id:
            return
        self.epoch_start_offset = start_offset
        if self._is_alone:
            self._count_end(leader_epoch, start_offset)
        else:
            # An fsync that began while this broker followed, or in an earlier epoch, may still run.
            self.appender.count_end(partial(self._count_end, leader_epoch))

    def _count_end(self, leader_epoch: int, end: int) -> None:
        """Count this broker's log up to `end`, if it still leads in that epoch."""
        if leader_epoch == self.leader_epoch and self.leader == self._node_id:
            self._own_end = max(self._own_end, end)
            self._advance_high_watermark()

    def _appended(self, info: AppendInfo) -> None:
        if info.duplicate:
            return
        end = info.last_offset + 1
        if end > self._own_end:  # noqa: PLR1730 - a call of `max` takes longer
            self._own_end = end
        self._advance_high_watermark()
        if not self._is_alone:
            self._events.appended(self)

    def _advance_high_watermark(self) -> None:
        if self.leader != self._node_id:
            return
        new = self._own_end if self._is_alone else self._replicated_end()
        if new > self.high_watermark:
            self.log.advance_high_watermark(new)
            self.high_watermark = new
            self._on_advance(self)

    def _replicated_end(self) -> int:
        """The offset that the high watermark may have; -1 while few are in sync, or replicas outside can be elected."""
        if not self._enough_in_sync() or (self.image is not None and self.image.eligible_leader_replicas):
            return NO_OFFSET
        return self.followers.high_watermark(self._own_end, self.log.log_end_offset, self.maximal_isr())

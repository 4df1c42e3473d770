"""The log against a Python list: the same records are found after any sequence of operations."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers, Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.compaction.log_cleaning import LogCleaning
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.compression.codecs import Codec
from tests.effort import examples
from tests.storage.logs import NOW, TOPIC_ID, batch, open_log_dir, read_all


class Appended(NamedTuple):
    """A record as it should be read back; `batch` is the base offset of its batch."""

    offset: int
    key: bytes
    value: bytes
    timestamp: int
    epoch: int
    batch: int


class LogModel(RuleBasedStateMachine):
    """`records` are those of the log, in order; `epoch_starts` the first offsets of leader epochs.

    Everything below `compacted` may have gaps.
    """

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.clock = ManualClock(NOW)
        self.records: list[Appended] = []
        self.epoch_starts: dict[int, int] = {}
        self.end = self.start = self.compacted = 0
        self.epoch = 0
        self.producer = 4
        self.sequence = 0
        self.counter = 0

    @initialize(
        segment_bytes=st.sampled_from([400, 1000, 100_000]),
        interval=st.sampled_from([0, 150, 4096]),
        index_bytes=st.sampled_from([48, 240, 10_000]),
        open_files=st.sampled_from([3, 100]),
        preallocate=st.booleans(),
    )
    def make(self, segment_bytes: int, interval: int, index_bytes: int, open_files: int, preallocate: bool) -> None:
        self.config = LogConfig(
            segment_bytes=segment_bytes,
            index_interval_bytes=interval,
            segment_index_bytes=index_bytes,
            segment_ms=50_000,
            preallocate=preallocate,
            cleanup_policy=frozenset({"compact", "delete"}),
            min_cleanable_dirty_ratio=0.0,
            retention_ms=-1,
            file_delete_delay_ms=0,
        )
        self.options = {"max_open_files": open_files, "clock": self.clock}
        self.log_dir = open_log_dir(self.path, self.config, **self.options)
        self.log_dir.create_log("t", 0, TOPIC_ID, self.config)

    @property
    def log(self) -> Log:
        return self.log_dir.logs["t", 0]

    # ---------------------------------------------------------------------------------------------------------- actions

    @rule(
        count=st.integers(1, 4),
        jump=st.integers(-30_000, 60_000),
        codec=st.sampled_from(list(Codec)),
        size=st.integers(0, 60),
    )
    def append(self, count: int, jump: int, codec: Codec, size: int) -> None:
        values = [b"%d" % (self.counter + index) + b"x" * size for index in range(count)]
        key = b"%d" % (self.counter % 3)
        self.counter += count
        timestamp = NOW + jump
        data = batch(
            *values,
            key=key,
            timestamp=timestamp,
            codec=codec,
            producer_id=self.producer,
            producer_epoch=0,
            base_sequence=self.sequence,
        )
        info = self.log.append_as_leader(data, self.epoch, self.clock.time_ms())
        assert info.base_offset == self.end
        self.records += [
            Appended(self.end + index, key, value, timestamp + index, self.epoch, self.end)
            for index, value in enumerate(values)
        ]
        self.epoch_starts.setdefault(self.epoch, self.end)
        self.end += count
        self.sequence += count

    @precondition(lambda self: self.records and self.records[-1].offset >= max(self.start, self.compacted))
    @rule()
    def append_again(self) -> None:
        last = [record for record in self.records if record.batch == self.records[-1].batch]
        data = batch(
            *(record.value for record in last), producer_id=self.producer, producer_epoch=0,
            base_sequence=self.sequence - len(last),
        )  # fmt: skip
        info = self.log.append_as_leader(data, self.epoch, self.clock.time_ms())
        assert info.duplicate
        assert (info.base_offset, info.last_offset) == (last[0].offset, last[-1].offset)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(part=st.floats(0, 1))
    def flush(self, part: float) -> None:
        self.log.flush(int(self.end * part))
        self.log_dir.checkpoint()

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, self.compacted, self.log.first_base_offset)
        self.log.truncate_to(target)
        if target < self.end:
            self.records = [r for r in self.records if self.last_of(r) < target]
            self.end = max(
                self.records[-1].offset + 1 if self.records else 0, self.compacted, self.log.first_base_offset
            )
            self.epoch_starts = {epoch: first for epoch, first in self.epoch_starts.items() if first < self.end}
            self.start = min(self.start, self.end)
            self.take_back_sequence()
        self.log_dir.checkpoint()

    def last_of(self, record: Appended) -> int:
        return max(other.offset for other in self.records if other.batch == record.batch)

    def take_back_sequence(self) -> None:
        """The producer goes on after what is left; the log forgets it if nothing is left above its start.

        Then another one goes on. The first may come back with an older sequence number: recovery reads whole segments,
        as in Kafka.
        """
        entry = self.log.producers.entries.get(self.producer)
        assert (entry is not None) == bool(self.records and self.records[-1].offset >= self.start)
        if entry is not None:
            assert entry.last_offset == self.end - 1
            self.sequence = entry.last_sequence + 1
        else:
            self.producer, self.sequence = self.producer + 1, 0

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.log.advance_high_watermark(self.end)
        target = self.start + int((self.end - self.start) * part)
        self.log.update_log_start_offset(target)
        self.start = target
        self.log_dir.checkpoint()

    @rule(part=st.floats(0, 1))
    def retain(self, part: float) -> None:
        """Delete the oldest segments by size; the active one is rolled first if it is too much as well."""
        log = self.log
        log.advance_high_watermark(self.end)
        log.configure(replace(self.config, retention_bytes=int(log.size_bytes * part)))
        if log.active_segment in log.segments_to_delete():
            log.roll()
        segments = [segment for segment in log.segments_to_delete() if segment is not log.active_segment]
        if segments:
            target = log.end_of_segment(segments[-1])
            log.update_log_start_offset(target)
            self.log_dir.checkpoint_log_start_offsets()
            log.delete_segments(segments)
            self.start = max(self.start, target)
        log.configure(self.config)
        self.log_dir.deletions.run_due()
        self.log_dir.checkpoint()

    @rule(keys=st.integers(1, 4))
    def compact(self, keys: int) -> None:
        """Compact up to the active segment, as far as so many keys reach, and forget what was superseded till then."""
        self.log.advance_high_watermark(self.end)
        cleaner = Cleaner([self.log_dir], self.clock)
        dirty = max(self.log.cleaned_offset or 0, self.start)
        if cleaner.run_once(self.clean, CleanerSettings(buffer_bytes=24 * (keys + 1), load_factor=keys / (keys + 1))):
            done = self.log.cleaned_offset
            assert done is not None
            assert dirty <= done <= self.log.active_segment.base_offset
            last = {record.key: record.offset for record in self.records if dirty <= record.offset < done}
            self.records = [r for r in self.records if r.offset >= done or r.offset >= last.get(r.key, 0)]
            self.compacted = max(self.compacted, self.log.active_segment.base_offset)
        self.log_dir.deletions.run_due()

    def clean(self, job: CleaningJob, _: CleaningState) -> Answers:
        descriptors = DescriptorCache(OsFiles(), 5)
        cleaning = LogCleaning(job, descriptors, self.clock)
        yield from cleaning
        descriptors.close()
        yield cleaning.done

    @rule()
    def reopen_after_a_clean_stop(self) -> None:
        self.log_dir.close()
        self.log_dir = open_log_dir(self.path, self.config, **self.options)
        assert self.log_dir.was_clean

    @rule(torn=st.integers(0, 80))
    def reopen_after_a_kill(self, torn: int) -> None:
        active = Path(self.log.active_segment.log.path)
        size = self.log.active_segment.size
        self.log_dir.close(clean=False)
        with active.open("r+b") as file:
            file.seek(size)
            file.write(bytes(batch(b"torn"))[:torn] if torn < 70 else b"\0" * torn)
        self.log_dir = open_log_dir(self.path, self.config, **self.options)
        assert not self.log_dir.was_clean

    # ------------------------------------------------------------------------------------------------------- invariants

    @invariant()
    def the_bounds_are_right(self) -> None:
        if hasattr(self, "log_dir"):
            log = self.log
            assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
            assert log.recovery_point <= self.end
            assert log.active_segment.base_offset <= self.end

    @invariant()
    def everything_is_found(self) -> None:
        if hasattr(self, "log_dir"):
            wanted = [r for r in self.records if r.offset >= self.start]
            found = read_all(self.log, max_bytes=300)
            assert [(r.offset, r.value, r.timestamp) for r in found] == [
                (r.offset, r.value, r.timestamp) for r in wanted
            ]

    @rule(part=st.floats(0, 1))
    def look_up(self, part: float) -> None:
        wanted = [r for r in self.records if r.offset >= self.start]
        if wanted:
            one = wanted[int(part * (len(wanted) - 1))]
            first = next(r for r in wanted if r.timestamp >= one.timestamp)
            assert self.log.offset_for_timestamp(one.timestamp) == (first.timestamp, first.offset, first.epoch)
            assert self.log.epoch_for_offset(one.offset) == one.epoch
            later = [first for epoch, first in self.epoch_starts.items() if epoch > one.epoch]
            if later and later[0] > self.start:
                assert self.log.end_offset_for_epoch(one.epoch) == (one.epoch, later[0])

    def teardown(self) -> None:
        if hasattr(self, "log_dir"):
            self.log_dir.close()
        shutil.rmtree(self.path)


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(examples(60), stateful_step_count=40)

"""The log against a Python list: whatever is done to it, it holds what was appended and not cut off, and finds it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.storage.log import Log
from broker.storage.log_config import LogConfig
from broker.testing.clock import ManualClock
from protocol.records import Codec
from tests.storage.logs import NOW, TOPIC_ID, batch, open_log_dir, read_all

PRODUCER = 4


class Appended(NamedTuple):
    """A record as it should be read back; `batch` is the base offset of its batch."""

    offset: int
    value: bytes
    timestamp: int
    epoch: int
    batch: int


class LogModel(RuleBasedStateMachine):
    """`records` are those of the log, in order; `epochs` the leader epochs by their first offset."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.clock = ManualClock(NOW)
        self.records: list[Appended] = []
        self.end = self.start = 0
        self.epoch = 0
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
        self.counter += count
        timestamp = NOW + jump
        data = batch(
            *values,
            timestamp=timestamp,
            codec=codec,
            producer_id=PRODUCER,
            producer_epoch=0,
            base_sequence=self.sequence,
        )
        info = self.log.append_as_leader(data, self.epoch, self.clock.time_ms())
        assert info.base_offset == self.end
        self.records += [
            Appended(self.end + index, value, timestamp + index, self.epoch, self.end)
            for index, value in enumerate(values)
        ]
        self.end += count
        self.sequence += count

    @precondition(lambda self: self.records and self.records[-1].offset >= self.start)
    @rule()
    def append_again(self) -> None:
        last = [record for record in self.records if record.batch == self.records[-1].batch]
        data = batch(
            *(record.value for record in last), producer_id=PRODUCER, producer_epoch=0,
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
        target = max(self.end - back, 0)
        self.log.truncate_to(target)
        if target < self.end:
            self.records = [r for r in self.records if self.last_of(r) < target]
            self.end = self.records[-1].offset + 1 if self.records else 0
            self.start = min(self.start, self.end)
            self.take_back_sequence()
        self.log_dir.checkpoint()

    def last_of(self, record: Appended) -> int:
        return max(other.offset for other in self.records if other.batch == record.batch)

    def take_back_sequence(self) -> None:
        """The producer goes on after what is left; the log forgets it if nothing is left above its start."""
        entry = self.log.producers.entries.get(PRODUCER)
        assert (entry is not None) == bool(self.records and self.records[-1].offset >= self.start)
        if entry is not None:
            assert entry.last_offset == self.end - 1
            self.sequence = entry.last_sequence + 1

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.log.advance_high_watermark(self.end)
        target = self.start + int((self.end - self.start) * part)
        self.log.update_log_start_offset(target)
        self.start = target
        self.log_dir.checkpoint()

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
            later = [r for r in self.records if r.epoch > one.epoch]
            if later and later[0].offset > self.start:
                assert self.log.end_offset_for_epoch(one.epoch) == (one.epoch, later[0].offset)

    def teardown(self) -> None:
        if hasattr(self, "log_dir"):
            self.log_dir.close()
        shutil.rmtree(self.path)


TestLogModel = LogModel.TestCase
TestLogModel.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)

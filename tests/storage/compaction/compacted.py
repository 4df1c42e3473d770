"""A log directory with a log to compact, and its compaction in this process."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.storage.cleaning_state import CleaningState
from odradek.broker.storage.compaction.cleaner import Answers, Clean, Cleaner, CleanerSettings
from odradek.broker.storage.compaction.cleaning_job import CleaningJob
from odradek.broker.storage.compaction.log_cleaning import LogCleaning
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.resources import LogResources
from odradek.broker.testing.clock import ManualClock
from tests.storage.logs import NOW, TOPIC_ID, append, make_resources, open_log_dir, read_all

SETTINGS = CleanerSettings(buffer_bytes=24_000)
COMPACT = LogConfig(
    cleanup_policy=frozenset({"compact"}), segment_bytes=500, min_cleanable_dirty_ratio=0.01, file_delete_delay_ms=0
)


class Compacted:
    """A log directory with one compacted log, compacted in this process by a clock that stands still."""

    def __init__(self, path: Path, config: LogConfig = COMPACT) -> None:
        self.path = path
        self.clock = ManualClock(NOW)
        self.config = config
        self.resources = make_resources(path, clock=self.clock)
        self.log_dir = open_log_dir(path, config, clock=self.clock)
        self.log = self.log_dir.create_log("t", 0, TOPIC_ID, config)
        self.cleaner = Cleaner([self.log_dir], self.clock)

    def put(self, key: bytes, *values: bytes | None, **fields: object) -> int:
        return append(self.log, *values, key=key, **fields)

    def roll(self) -> None:
        """Let everything so far be cleanable."""
        self.log.roll()
        self.log.advance_high_watermark(self.log.log_end_offset)

    def compact(self, clean: Clean | None = None, settings: CleanerSettings = SETTINGS) -> bool:
        return self.cleaner.run_once(clean or in_process(self.resources), settings)

    def left(self) -> list[tuple[int, bytes | None, bytes | None]]:
        return [(record.offset, record.key, record.value) for record in read_all(self.log)]

    def shape(self) -> list[tuple[int, int, int]]:
        """Base offset, last offset and count of every batch."""
        return [
            (header.base_offset, header.last_offset, header.records_count)
            for segment in self.log.segments
            for _, header in segment.log.headers()
        ]

    def reopen(self) -> None:
        self.log_dir.close()
        self.log_dir = open_log_dir(self.path, self.config, clock=self.clock)
        self.log = self.log_dir.logs["t", 0]
        self.log.advance_high_watermark(self.log.log_end_offset)
        self.cleaner = Cleaner([self.log_dir], self.clock)


def in_process(resources: LogResources) -> Clean:
    def clean(job: CleaningJob, _: CleaningState) -> Answers:
        cleaning = LogCleaning(job, resources.descriptors, resources.clock)
        yield from cleaning
        yield cleaning.done

    return clean


def fill(compacted: Compacted) -> None:
    for index in range(60):
        compacted.put(b"k%d" % (index % 4), b"%d" % index)
    compacted.roll()

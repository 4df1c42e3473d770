"""Logs of a directory that was not stopped in order, and what must hold after recovery."""

from __future__ import annotations

from pathlib import Path

from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from tests.storage.logs import NOW, TOPIC_ID, append, batch, open_log_dir, values_of

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=100, segment_index_bytes=1200)


COUNT = 20


def fill(path: Path, *, flushed: int = 0, config: LogConfig = CONFIG) -> list[bytes | None]:
    """A log of 20 batches, left as by a killed process; all below `flushed` is below the recovery point."""
    log_dir = open_log_dir(path, config)
    log = log_dir.create_log("t", 0, TOPIC_ID, config)
    for index in range(COUNT):
        log.append_as_leader(numbered(index), index // 8, NOW)
    if flushed:
        log.flush(flushed)
    log.advance_high_watermark(COUNT)
    log_dir.checkpoint()
    values = values_of(log)
    log_dir.close(clean=False)
    assert len(values) == COUNT
    return values


def numbered(index: int) -> memoryview:
    """The batch that `fill` puts at an offset."""
    return batch(b"value %d" % index, timestamp=NOW + index, producer_id=9, producer_epoch=0, base_sequence=index)


def reopened(path: Path, config: LogConfig = CONFIG) -> tuple[LogDir, Log]:
    log_dir = open_log_dir(path, config)
    return log_dir, log_dir.logs["t", 0]


def segment_files(path: Path, suffix: str) -> list[Path]:
    return sorted((path / "t-0").glob(f"*{suffix}"))


def assert_works_on(log: Log, values: list[bytes | None]) -> None:
    """The log holds exactly `values`, by each way of finding them, has the state of its producer, and accepts more."""
    end = len(values)
    assert log.log_end_offset == end
    assert values_of(log) == values
    for offset in range(end):
        assert values_of(log, start=offset) == values[offset:]
        assert log.offset_for_timestamp(NOW + offset) == (NOW + offset, offset, offset // 8)
    assert log.high_watermark == end
    if values:
        assert log.latest_leader_epoch == (end - 1) // 8
        (producer,) = log.producers
        assert (producer.last_sequence, producer.last_offset) == (end - 1, end - 1)
    assert append(log, b"more", leader_epoch=5, producer_id=9, producer_epoch=0, base_sequence=end) == end
    assert values_of(log) == [*values, b"more"]

"""The logs of a directory that a broker is writing, or has left without a clean stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.storage.offline.listing import NoLogDirError
from odradek.broker.storage.offline.live_log import LiveLogDir
from tests.storage.logs import NOW, TOPIC_ID, append, marker, open_log_dir


@pytest.fixture
def log_dir(tmp_path: Path) -> Iterator[LogDir]:
    """A broker's directory, with the log of `t-0` in it."""
    opened = open_log_dir(tmp_path)
    opened.create_log("t", 0, TOPIC_ID, LogConfig(segment_bytes=400))
    yield opened
    opened.close(clean=False)


def test_a_log_ends_at_the_checkpointed_high_watermark(log_dir: LogDir) -> None:
    log = log_dir.logs["t", 0]
    for _ in range(5):
        append(log, b"x" * 50)
    log.advance_high_watermark(3)
    log_dir.checkpoint_high_watermarks()

    live = LiveLogDir(str(log_dir.path)).open(("t", 0))

    assert (live.start_offset, live.end_offset, live.last_end, live.ends_by_offset) == (0, 3, 5, True)
    assert live.lost_end() is None


def test_a_log_without_a_high_watermark_ends_before_what_is_not_whole(log_dir: LogDir) -> None:
    log = log_dir.logs["t", 0]
    append(log, b"x")
    with Path(log.active_segment.log.path).open("ab") as file:
        file.write(b"half a batch")

    live = LiveLogDir(str(log_dir.path)).open(("t", 0))

    assert (live.end_offset, live.segments.active.size, live.ends_by_offset) == (1, log.size_bytes, False)
    assert live.lost_end() is None  # the lock is held


def test_an_open_transaction_holds_the_last_stable_offset(log_dir: LogDir) -> None:
    log = log_dir.logs["t", 0]
    append(log, b"x")
    append(log, b"y", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert LiveLogDir(str(log_dir.path)).open(("t", 0)).last_stable_offset() == 1

    log.append_as_leader(marker(7, 0, commit=True), 0, NOW, Origin.COORDINATOR)
    assert LiveLogDir(str(log_dir.path)).open(("t", 0)).last_stable_offset() == 3


def test_a_log_whose_file_was_replaced_is_read_from_the_new_file(log_dir: LogDir) -> None:
    log = log_dir.logs["t", 0]
    append(log, b"x" * 50)
    first_size = log.size_bytes
    append(log, b"y" * 50)
    with LiveLogDir(str(log_dir.path)) as live_dir:
        segment = live_dir.open(("t", 0)).segments.first
        assert segment.locate(1) == (first_size, log.size_bytes - first_size)

        path = Path(segment.log.path)
        path.with_suffix(".swap").write_bytes(path.read_bytes()[first_size:])
        path.with_suffix(".swap").replace(path)

        assert live_dir.open(("t", 0)).segments.first.locate(1) == (0, log.size_bytes - first_size)


def test_directories_without_a_segment_are_left_out(log_dir: LogDir) -> None:
    (log_dir.path / "notes-2024").mkdir()
    assert LiveLogDir(str(log_dir.path)).partitions == [("t", 0)]


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    with pytest.raises(NoLogDirError):
        LiveLogDir(str(tmp_path))

"""Deleted partitions of a log directory: their files, names, links, and removals that fail."""

from __future__ import annotations

import errno
import os
from collections import Counter
from pathlib import Path

import pytest

from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import (
    NOW,
    OTHER_ID,
    TOPIC_ID,
    append,
    names_in,
    open_files,
    open_log_dir,
    values_of,
)


def test_the_files_of_a_deleted_log_are_removed_after_the_delay(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    log_dir = open_log_dir(tmp_path, clock=clock)
    log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=1000))
    append(log, b"a")
    data = log.read(0, 1000, 1)
    job = log_dir.delete_log("t", 0)
    assert job.due == clock.monotonic() + 1
    (name,) = [name for name in names_in(tmp_path) if name.startswith("t-0")]
    assert name.endswith("-delete")
    assert len(name) == len("t-0.") + 32 + len("-delete")
    clock.advance(999)
    assert log_dir.deletions.run_due() == 0
    clock.advance(1)
    assert log_dir.deletions.run_due() == 1
    assert not (tmp_path / name).exists()
    assert len(data.read()) > 0  # who was reading may go on
    data.release()
    assert open_files(tmp_path) == [str(tmp_path / ".lock")]
    with pytest.raises(KafkaError) as error:
        log_dir.delete_log("t", 0)
    assert error.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log_dir.close()


class CountedSyncs(OsFiles):
    """Counts the syncs of directories, by path; those with an error in `errors` fail."""

    def __init__(self) -> None:
        self.syncs: Counter[str] = Counter()
        self.errors: dict[str, int] = {}

    def fsync_directory(self, path: str) -> None:
        self.syncs[path] += 1
        if path in self.errors:
            raise OSError(self.errors[path], os.strerror(self.errors[path]), path)
        super().fsync_directory(path)


def test_logs_that_are_deleted_together_share_a_sync_and_fail_alone(tmp_path: Path) -> None:
    files = CountedSyncs()
    log_dir = open_log_dir(tmp_path, files=files)
    for index in range(4):
        log_dir.create_log("t", index, TOPIC_ID, LogConfig())
    files.syncs.clear()

    outcomes = log_dir.delete_logs([("t", 0), ("t", 9), ("t", 2), ("t", 0)])

    errors = {number: each.code for number, each in enumerate(outcomes) if isinstance(each, KafkaError)}
    assert errors == dict.fromkeys((1, 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert set(log_dir.logs) == {("t", 1), ("t", 3)}
    assert files.syncs == {str(tmp_path): 1}
    assert len(log_dir.deletions) == 2
    log_dir.close()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO])
def test_a_sync_after_a_deletion_fails_it_only_if_the_disk_has_failed(tmp_path: Path, code: int) -> None:
    files = CountedSyncs()
    log_dir = open_log_dir(tmp_path, files=files)
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    files.errors[str(tmp_path)] = code

    if code == errno.EIO:
        with pytest.raises(KafkaError):
            log_dir.delete_logs([("t", 0)])
    else:
        assert len(log_dir.delete_logs([("t", 0)])) == len(log_dir.deletions) == 1

    assert (log_dir.failure.error is not None) is (code == errno.EIO)
    assert log_dir.logs == {}
    files.errors.clear()
    log_dir.close()


def test_a_name_can_be_used_again_at_once(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    append(log_dir.create_log("t", 0, TOPIC_ID, LogConfig()), b"a", b"b")
    log_dir.delete_log("t", 0)
    log = log_dir.create_log("t", 0, OTHER_ID, LogConfig())
    assert append(log, b"c") == 0
    log_dir.close()
    again = open_log_dir(tmp_path)
    assert values_of(again.logs["t", 0]) == [b"c"]
    assert again.logs["t", 0].topic_id == OTHER_ID
    again.close()


def test_the_longest_topic_can_be_deleted(tmp_path: Path) -> None:
    topic = "x" * 249
    log_dir = open_log_dir(tmp_path)
    log_dir.create_log(topic, 0, TOPIC_ID, LogConfig())
    log_dir.delete_log(topic, 0)
    (name,) = [name for name in names_in(tmp_path) if name.endswith("-delete")]
    assert len(name) == 255
    log_dir.close()
    open_log_dir(tmp_path).close()
    assert not (tmp_path / name).exists()


def test_half_deleted_partitions_are_removed_at_the_start(tmp_path: Path) -> None:
    directory = tmp_path / "t-0.0123456789abcdef0123456789abcdef-delete"
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(b"x")
    open_log_dir(tmp_path).close()
    assert not directory.exists()


class StubbornFiles(OsFiles):
    """A file system where some names cannot be removed."""

    def __init__(self, code: int, *paths: Path) -> None:
        self.code = code
        self.paths = {str(path) for path in paths}

    def _refuse(self, path: str) -> None:
        if path in self.paths:
            raise OSError(self.code, os.strerror(self.code), path)

    def remove(self, path: str) -> None:
        self._refuse(path)
        super().remove(path)

    def remove_directory(self, path: str) -> None:
        self._refuse(path)
        super().remove_directory(path)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBUSY, errno.EPERM, errno.EIO])
def test_a_deleted_partition_that_cannot_be_removed_at_the_start_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    directory, other = [tmp_path / f"t-{index}.0123456789abcdef0123456789abcdef-delete" for index in range(2)]
    directory.mkdir()
    other.mkdir()
    log_dir = open_log_dir(tmp_path, files=StubbornFiles(code, directory))
    assert any(str(directory) in record.message for record in caplog.records if record.levelname == "WARNING")
    assert not other.exists()
    log_dir.close()


def test_a_deleted_segment_that_cannot_be_removed_at_the_start_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log_dir = open_log_dir(tmp_path)
    append(log_dir.create_log("t", 0, TOPIC_ID, LogConfig()), b"a")
    log_dir.close()
    left = tmp_path / "t-0" / "00000000000000000000.log.deleted"
    left.write_bytes(b"x")
    log_dir = open_log_dir(tmp_path, files=StubbornFiles(errno.EPERM, left))
    assert values_of(log_dir.logs["t", 0]) == [b"a"]
    assert any(str(left) in record.message for record in caplog.records if record.levelname == "WARNING")
    log_dir.close()


def test_a_deleted_partition_that_cannot_be_removed_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = StubbornFiles(errno.EBUSY)
    log_dir = open_log_dir(tmp_path, files=files)
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    files.paths = set(log_dir.delete_log("t", 0).directories)
    log_dir.deletions.run_due()
    assert (log_dir.failure.error, len(log_dir.deletions)) == (None, 0)
    assert any(str(*files.paths) in record.message for record in caplog.records if record.levelname == "WARNING")
    log_dir.close()


def test_a_removal_without_a_descriptor_is_retried(tmp_path: Path) -> None:
    clock, files = ManualClock(NOW), StubbornFiles(errno.EMFILE)
    log_dir = open_log_dir(tmp_path, files=files, clock=clock)
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig(file_delete_delay_ms=0))
    files.paths = set(log_dir.delete_log("t", 0).directories)
    log_dir.deletions.run_due()
    assert (log_dir.failure.error, len(log_dir.deletions)) == (None, 1)
    files.paths.clear()
    clock.advance(10_000)
    assert log_dir.deletions.run_due() == 1
    assert not list(tmp_path.glob("t-0*"))
    log_dir.close()


def linked(log_dir: Path, elsewhere: Path) -> None:
    """Create a log and move it, with a foreign file, behind a symbolic link."""
    opened = open_log_dir(log_dir)
    append(opened.create_log("t", 0, TOPIC_ID, LogConfig()), b"a")
    opened.close()
    (log_dir / "t-0").rename(elsewhere)
    (elsewhere / "of-somebody-else").write_text("x")
    (log_dir / "t-0").symlink_to(elsewhere)


def test_of_a_partition_behind_a_symbolic_link_the_log_and_the_link_are_removed(tmp_path: Path) -> None:
    linked(tmp_path / "log", tmp_path / "elsewhere")
    log_dir = open_log_dir(tmp_path / "log", LogConfig(file_delete_delay_ms=0))
    assert values_of(log_dir.logs["t", 0]) == [b"a"]
    log_dir.delete_log("t", 0)
    log_dir.deletions.run_due()
    assert log_dir.failure.error is None
    assert not [name for name in names_in(tmp_path / "log") if name.startswith("t-0")]
    assert names_in(tmp_path / "elsewhere") == ["of-somebody-else"]
    log_dir.close()


def test_a_link_whose_removal_a_stop_interrupted_is_removed_at_the_start(tmp_path: Path) -> None:
    linked(tmp_path / "log", tmp_path / "elsewhere")
    log_dir = open_log_dir(tmp_path / "log")
    log_dir.delete_log("t", 0)
    log_dir.close()
    open_log_dir(tmp_path / "log").close()
    assert not [name for name in names_in(tmp_path / "log") if name.startswith("t-0")]
    assert names_in(tmp_path / "elsewhere") == ["of-somebody-else"]


def test_a_partition_whose_directory_has_leading_zeros_can_be_deleted(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path)
    log_dir.create_log("t", 0, TOPIC_ID, LogConfig())
    log_dir.close()
    (tmp_path / "t-0").rename(tmp_path / "t-00")
    log_dir = open_log_dir(tmp_path)
    log_dir.delete_log("t", 0)
    assert log_dir.failure.error is None
    assert not (tmp_path / "t-00").exists()
    log_dir.close()

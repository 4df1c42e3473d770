"""A failing disk: the operation reports it, the directory is offline, nothing acknowledged is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.broker.randomness import SeededRandomness
from odradek.broker.storage.disk.files import BytesLike, OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import NOW, TOPIC_ID, append, batch, open_log_dir, values_of

CONFIG = LogConfig(index_interval_bytes=0)


class FailingFiles(OsFiles):
    """The real file system, until `fail` is set to the operation that fails; it counts how often that is tried."""

    def __init__(self) -> None:
        self.fail = ""
        self.tried = 0
        self.errors: list[OSError] = []

    def _maybe_fail(self, operation: str, code: int = errno.EIO) -> None:
        if operation == self.fail:
            self.tried += 1
            raise OSError(code, os.strerror(code))

    def open(self, path: str, *, create: bool = False) -> int:
        self._maybe_fail("create" if create else "open")
        return super().open(path, create=create)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self._maybe_fail("read")
        return super().pread(descriptor, length, position)

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        if self.fail == "write":
            super().pwrite(descriptor, bytes(data)[: len(data) // 2], position)  # the disk became full half-way
        self._maybe_fail("write", errno.ENOSPC)
        super().pwrite(descriptor, data, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._maybe_fail("truncate")
        super().truncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        self._maybe_fail("fsync")
        super().fsync(descriptor)

    def fsync_directory(self, path: str) -> None:
        self._maybe_fail("fsync")
        super().fsync_directory(path)

    def rename(self, source: str, target: str) -> None:
        self._maybe_fail("rename")
        super().rename(source, target)


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


@pytest.fixture
def log_dir(tmp_path: Path, files: FailingFiles) -> LogDir:
    log_dir = open_log_dir(tmp_path, CONFIG, files=files, on_failure=files.errors.append)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    log_dir.create_log("t", 1, TOPIC_ID, CONFIG)
    for value in (b"a", b"b"):
        append(log, value)
    log.flush(1)
    return log_dir


def reading(log_dir: LogDir) -> None:
    log_dir.logs["t", 0].read(0, 1000, 2).release()


CALLS: list[tuple[str, str, Callable[[LogDir], object]]] = [
    ("append to a full disk", "write", lambda d: append(d.logs["t", 0], b"c")),
    ("follow on a full disk", "write", lambda d: d.logs["t", 1].append_as_follower(bytearray(batch(b"c")))),
    ("a new leader epoch", "rename", lambda d: append(d.logs["t", 0], b"c", leader_epoch=1)),
    ("flush", "fsync", lambda d: d.logs["t", 0].flush()),
    ("roll", "create", lambda d: d.logs["t", 0].roll()),
    ("roll, cutting indexes", "truncate", lambda d: d.logs["t", 0].roll()),
    ("truncation", "truncate", lambda d: d.logs["t", 0].truncate_to(1)),
    ("search by time", "read", lambda d: d.logs["t", 0].offset_for_timestamp(NOW)),
    ("creation", "create", lambda d: d.create_log("u", 0, TOPIC_ID, CONFIG)),
    ("deletion", "rename", lambda d: d.delete_log("t", 1)),
    ("checkpoint", "write", lambda d: d.checkpoint_recovery_points()),
    ("checkpoint, syncing", "fsync", lambda d: d.checkpoint_high_watermarks()),
]


@pytest.mark.parametrize(("operation", "call"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_a_failure_takes_the_directory_offline(
    log_dir: LogDir, files: FailingFiles, tmp_path: Path, operation: str, call: Callable[[LogDir], object]
) -> None:
    files.fail = operation
    with pytest.raises(KafkaError) as error:
        call(log_dir)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert error.value.retriable
    assert log_dir.failure.error is files.errors[0]
    tried = files.tried
    files.fail = ""  # the disk looks healthy again, and is not trusted
    log = log_dir.logs["t", 0]
    later: list[Callable[[], object]] = [
        lambda: append(log, b"c"),
        lambda: log.append_as_follower(bytearray(batch(b"c"))),
        lambda: log.read(0, 1000, 2),
        log.flush,
        log.roll,
        lambda: log.truncate_to(0),
        log_dir.checkpoint,
        lambda: log_dir.create_log("v", 0, TOPIC_ID, CONFIG),
    ]
    for attempt in later:
        with pytest.raises(KafkaError) as error:
            attempt()
        assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (files.tried, len(files.errors)) == (tried, 1)
    log_dir.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again = open_log_dir(tmp_path, CONFIG)
    left = values_of(again.logs["t", 0])
    assert left == [b"a", b"b"] or (operation == "truncate" and left == [b"a"])
    again.close()


def test_a_failed_append_leaves_no_record(log_dir: LogDir, files: FailingFiles, tmp_path: Path) -> None:
    log = log_dir.logs["t", 0]
    files.fail = "write"
    with pytest.raises(KafkaError):
        append(log, b"c")
    assert log.log_end_offset == 2
    log_dir.close()
    again = open_log_dir(tmp_path, CONFIG)
    assert values_of(again.logs["t", 0]) == [b"a", b"b"]
    assert append(again.logs["t", 0], b"d") == 2
    again.close()


def test_a_failed_sync_never_raises_the_recovery_point(log_dir: LogDir, files: FailingFiles) -> None:
    log = log_dir.logs["t", 0]
    files.fail = "fsync"
    with pytest.raises(KafkaError):
        log.flush()
    assert (log.recovery_point, files.tried) == (1, 1)
    files.fail = ""
    with pytest.raises(KafkaError):
        log.flush()
    assert log.recovery_point == 1


def test_a_failure_while_closing_leaves_no_marker(log_dir: LogDir, files: FailingFiles, tmp_path: Path) -> None:
    files.fail = "fsync"
    log_dir.close()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again = open_log_dir(tmp_path, CONFIG)
    assert (again.was_clean, values_of(again.logs["t", 0])) == (False, [b"a", b"b"])
    again.close()


def test_logs_of_other_directories_stay_online(log_dir: LogDir, files: FailingFiles, tmp_path: Path) -> None:
    other = open_log_dir(tmp_path / "other", CONFIG)
    log: Log = other.create_log("t", 0, TOPIC_ID, CONFIG)
    files.fail = "write"
    with pytest.raises(KafkaError):
        append(log_dir.logs["t", 0], b"c")
    assert append(log, b"a") == 0
    other.close()


def test_a_directory_that_refuses_all_writes_nothing_and_reports_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[OSError] = []
    log_dir = LogDir(tmp_path, clock=ManualClock(), randomness=SeededRandomness(1), on_failure=failures.append)
    log_dir.open(lambda _: CONFIG, node_id=1)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, b"a")
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    log_dir.failure.refuse_all()

    for work in (lambda: append(log, b"b"), log.flush, log_dir.checkpoint):
        with pytest.raises(KafkaError) as refused:
            work()
        assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    log_dir.close()
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert (failures, caplog.text) == ([], "")

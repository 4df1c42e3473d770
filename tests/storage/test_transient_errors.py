"""Transient errors: the caller may retry, and the log is unchanged."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.disk.disk_errors import TransientDiskError
from odradek.broker.storage.disk.files import BytesLike, FileEntry, OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.logs import NOW, TOPIC_ID, append, batch, marker, names_in, open_log_dir, values_of

T = TypeVar("T")

CONFIG = LogConfig(segment_bytes=300, index_interval_bytes=0, file_delete_delay_ms=0)


class ShortFiles(OsFiles):
    """The real file system, whose n-th operation from now on fails, once; a write does so half-way."""

    def __init__(self, code: int = errno.ENOMEM) -> None:
        self.code = code
        self.fail_at = 0
        self.operations = 0

    def fail(self, nth: int) -> None:
        self.operations, self.fail_at = 0, nth

    def _step(self) -> bool:
        self.operations += 1
        return self.operations == self.fail_at

    def _maybe_fail(self) -> None:
        if self._step():
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path: str, *, create: bool = False) -> int:
        self._maybe_fail()
        return super().open(path, create=create)

    def pread(self, descriptor: int, length: int, position: int) -> bytes:
        self._maybe_fail()
        return super().pread(descriptor, length, position)

    def pwrite(self, descriptor: int, data: BytesLike, position: int) -> None:
        if self._step():
            super().pwrite(descriptor, bytes(data)[: len(data) // 2], position)
            raise OSError(self.code, os.strerror(self.code))
        super().pwrite(descriptor, data, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._maybe_fail()
        super().truncate(descriptor, size)

    def rename(self, source: str, target: str) -> None:
        self._maybe_fail()
        super().rename(source, target)

    def make_directory(self, path: str) -> None:
        self._maybe_fail()
        super().make_directory(path)

    def remove(self, path: str) -> None:
        self._maybe_fail()
        super().remove(path)

    def fsync_directory(self, path: str) -> None:
        self._maybe_fail()
        super().fsync_directory(path)

    def scan(self, path: str) -> list[FileEntry]:
        self._maybe_fail()
        return super().scan(path)

    def read(self, path: str) -> bytes:
        self._maybe_fail()
        return super().read(path)


def again(call: Callable[[], T]) -> T:
    """Retry after KAFKA_STORAGE_ERROR, as clients do."""
    while True:
        try:
            return call()
        except TransientDiskError:
            continue


def produce(log: Log) -> None:
    """Appends that roll segments, begin an epoch, and end transactions; with flushes."""
    for number in range(4):
        for values, fields in (
            (b"%d", {"producer_id": 7, "producer_epoch": 0, "base_sequence": number}),
            (b"plain %d", {}),
            (b"aborted %d", {"producer_id": 8, "producer_epoch": 0, "base_sequence": number, "is_transactional": True}),
        ):
            again(partial(append, log, values % number, leader_epoch=number // 2, **fields))
        again(lambda n=number: log.append_as_leader(marker(8, 0, commit=False), n // 2, NOW, Origin.COORDINATOR))
        again(log.flush)
    again(log.roll)


STEP = 29  # with a step of one, which was tried, it takes a minute
EXPECTED = [value for n in range(4) for value in (b"%d" % n, b"plain %d" % n, b"aborted %d" % n)]


def values_again(log: Log) -> list[bytes | None]:
    try:
        return again(lambda: values_of(log))
    except OSError:  # of a slice, which its owner reads
        return again(lambda: values_of(log))


def check(log: Log) -> None:
    assert values_again(log) == EXPECTED
    aborted = again(lambda: log.aborted_transactions(0, log.log_end_offset))
    assert aborted == [(8, 2), (8, 6), (8, 10), (8, 14)]
    assert {entry.producer_id: entry.last_sequence for entry in log.producers} == {7: 3, 8: 3}
    assert again(lambda: log.offset_for_timestamp(NOW + 1)) is None
    assert [tuple(entry) for entry in log.leader_epochs] == [(0, 0), (1, 8)]
    assert log.log_end_offset == 16


def open_short(path: Path, files: ShortFiles) -> LogDir:
    return open_log_dir(path, CONFIG, files=files, max_open_files=1)  # every use of a file opens it


def operations_of_all(path: Path) -> int:
    files = ShortFiles()
    log_dir = open_short(path, files)
    files.fail(0)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    produce(log)
    check(log)
    log_dir.checkpoint()
    return files.operations


@pytest.mark.parametrize("is_killed", [False, True], ids=["closed", "killed"])
def test_a_transient_error_anywhere_leaves_the_log_whole(tmp_path: Path, is_killed: bool) -> None:
    total = operations_of_all(tmp_path / "counted")
    assert total > 200
    for nth in range(1 + STEP // 2 * is_killed, total, STEP):
        files = ShortFiles()
        path = tmp_path / f"{nth}"
        log_dir = open_short(path, files)
        files.fail(nth)
        log = again(lambda d=log_dir: d.create_log("t", 0, TOPIC_ID, CONFIG))
        produce(log)
        check(log)
        again(log_dir.checkpoint)
        assert log_dir.failure.error is None
        if not is_killed:
            log_dir.close()
            assert (path / ".kafka_cleanshutdown").exists()
        else:
            log_dir.close(clean=False)
        opened = open_log_dir(path, CONFIG)
        check(opened.logs["t", 0])
        opened.close()


CODES = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR, errno.EEXIST]


@pytest.mark.parametrize("code", CODES, ids=[errno.errorcode[code] for code in CODES])
def test_no_transient_error_takes_the_directory_offline(tmp_path: Path, code: int) -> None:
    files = ShortFiles(code)
    log_dir = open_short(tmp_path, files)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, b"a")
    calls: list[Callable[[], object]] = [
        lambda: append(log, b"b"),
        lambda: log.read(0, 1000, 1).release(),
        log.flush,
        log.roll,
        lambda: log_dir.create_log("u", 0, TOPIC_ID, CONFIG),
        log_dir.checkpoint,
    ]
    for call in calls:
        files.fail(1)
        again(call)
        assert files.operations > 0
    assert log_dir.failure.error is None
    log_dir.close()


def test_a_file_with_the_name_of_a_partition_fails_only_its_creation(tmp_path: Path) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    (tmp_path / "t-0").write_text("")
    (tmp_path / "t-1").symlink_to(tmp_path / "nowhere")
    for partition in range(2):
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            log_dir.create_log("t", partition, TOPIC_ID, CONFIG)
    assert log_dir.failure.error is None
    assert append(log_dir.create_log("t", 2, TOPIC_ID, CONFIG), b"a") == 0
    log_dir.close()


def test_unused_files_are_closed_when_no_descriptor_is_left(tmp_path: Path) -> None:
    files = ShortFiles(errno.EMFILE)
    log_dir = open_log_dir(tmp_path, CONFIG, files=files)
    logs = [log_dir.create_log("t", partition, TOPIC_ID, CONFIG) for partition in range(4)]
    for log in logs:
        append(log, b"a")
    log = log_dir.create_log("u", 0, TOPIC_ID, CONFIG)
    files.fail(1)
    append(log, b"b", leader_epoch=1)  # writes the epochs' file: the append itself needs no other
    assert values_of(log) == [b"b"]
    log_dir.close()


def test_transient_errors_are_logged_once_in_ten_seconds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files, clock = ShortFiles(), ManualClock(NOW)
    log_dir = open_log_dir(tmp_path, CONFIG, files=files, max_open_files=1, clock=clock)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)

    def warnings() -> int:
        return sum(record.levelno == logging.WARNING and "tried again" in record.message for record in caplog.records)

    for expected in (1, 1, 1, 2):
        files.fail(1)
        with pytest.raises(TransientDiskError) as error:
            log.append_as_leader(batch(b"a"), 0, NOW)
        assert (error.value.code, error.value.retriable) == (ErrorCode.KAFKA_STORAGE_ERROR, True)
        assert warnings() == expected
        clock.advance(4_000)
    log_dir.close()


@pytest.mark.parametrize("code", [errno.ENOMEM, errno.EINTR])
def test_a_sync_that_fails_is_never_transient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    log = log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    append(log, b"a")

    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KafkaError):
        log.flush()
    assert log_dir.failure.error is not None
    log_dir.close()


def test_a_partition_that_cannot_be_renamed_stays_and_can_be_deleted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_dir = open_log_dir(tmp_path, CONFIG)
    log_dir.create_log("t", 0, TOPIC_ID, CONFIG)
    rename = os.rename

    def busy(source: str, target: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")  # a mount point

    monkeypatch.setattr(os, "rename", busy)
    with pytest.raises(KafkaError, match="cannot be renamed"):
        log_dir.delete_log("t", 0)
    assert log_dir.failure.error is None
    monkeypatch.setattr(os, "rename", rename)
    log_dir.delete_log("t", 0)
    log_dir.deletions.run_due()
    assert not [name for name in names_in(tmp_path) if name.startswith("t-0")]
    log_dir.close()

"""An appender, a reader and a flush on three threads: everything below the end offset can be read."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event, Semaphore, Thread

import pytest

from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_slice import LogSlice
from odradek.broker.storage.opening.log_opening import create_log
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import batch_headers
from tests.effort import cases
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, TOPIC_ID, append, batch, make_resources, read_all, records_in

COUNT = cases(3000)


def run(*works: Callable[[], None]) -> list[Thread]:
    threads = [Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    return threads


def test_reading_and_syncing_beside_an_appender(new_log: NewLog) -> None:
    log: Log = new_log(segment_bytes=20_000, index_interval_bytes=200)
    done = Event()
    failures: list[BaseException] = []

    def appending() -> None:
        for index in range(COUNT):
            append(log, b"%d" % index, producer_id=3, producer_epoch=0, base_sequence=index, is_transactional=True)
        done.set()

    def syncing() -> None:
        while not done.is_set():
            log.flush()
            assert log.recovery_point <= log.log_end_offset

    def settling() -> None:
        while not done.is_set():
            log.advance_high_watermark(log.log_end_offset)
            assert log.last_stable_offset == 0  # the transaction that begins there is open all the time

    threads = run(*(guarded(work, done, failures) for work in (appending, syncing, settling)))
    offset = 0
    while offset < COUNT and not failures:
        offset = read_on(log, offset)
    for thread in threads:
        thread.join()
    assert failures == []
    assert offset == COUNT


def guarded(work: Callable[[], None], done: Event, failures: list[BaseException]) -> Callable[[], None]:
    def guard() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the main thread reports it
            failures.append(error)
            done.set()

    return guard


def read_on(log: Log, offset: int) -> int:
    """Read from `offset` up to the end of the log as it is now, see that all is there, and return where that was."""
    end = log.log_end_offset
    with log.read(offset, 5000, end) as slice_:
        data = slice_.read()
    headers = list(batch_headers(data))
    assert bool(headers) == (offset < end)
    for record in records_in(data[: sum(header.size for _, header in headers)]):
        assert (record.offset, record.value) == (offset, b"%d" % offset)
        offset += 1
    return offset


def test_reading_during_truncation(new_log: NewLog) -> None:
    """A reader gets the record, or OFFSET_OUT_OF_RANGE, and nothing else."""
    log = new_log(segment_bytes=1000, index_interval_bytes=100, file_delete_delay_ms=0)
    done = Event()
    size = len(batch(b"%06d" % 0))

    def cutting() -> None:
        for round_ in range(cases(60)):
            for index in range(log.log_end_offset, 40):
                append(log, b"%06d" % index)
            log.truncate_to(round_ % 37)
        done.set()

    (thread,) = run(cutting)
    reads = 0
    while not done.is_set():
        offset = reads % 40
        reads += 1
        try:
            with log.read(offset, size, log.log_end_offset) as slice_:
                for record in records_in(slice_.read()):
                    assert record.value == b"%06d" % record.offset
        except KafkaError as error:
            assert error.code is ErrorCode.OFFSET_OUT_OF_RANGE  # noqa: PT017 - most reads succeed
    thread.join()
    assert reads
    assert log.append_as_leader(batch(b"more"), 0, NOW).base_offset == log.log_end_offset - 1


class MissingFile(OsFiles):
    """The real files; the opening of one of them fails, which is counted, and renames call `renaming` first."""

    def __init__(self) -> None:
        self.missing = ""
        self.failed = Semaphore(0)
        self.renaming: Callable[[], object] = lambda: None

    def open(self, path: str, *, create: bool = False) -> int:
        if path == self.missing:
            self.failed.release()
            raise FileNotFoundError(path)
        return super().open(path, create=create)

    def rename(self, source: str, target: str) -> None:
        renaming, self.renaming = self.renaming, lambda: None
        renaming()
        super().rename(source, target)


def test_a_reader_that_fails_during_a_change_waits_for_its_end_and_retries(tmp_path: Path) -> None:
    """Only then is it clear whether the change is the reason. It does not retry in a loop meanwhile."""
    files = MissingFile()
    resources = make_resources(tmp_path, files)
    log = create_log(f"{tmp_path}/t-0", "t", 0, TOPIC_ID, LogConfig(segment_bytes=100), resources)
    for index in range(3):
        append(log, b"%d" % index)
    resources.descriptors.close()
    files.missing = log.segments.from_offset(1)[0].log.path
    attempts: list[bool] = []

    with ThreadPoolExecutor(1) as thread:

        def renaming() -> None:
            reading.append(thread.submit(log.read, 1, 1000, 3))
            attempts.append(files.failed.acquire(timeout=30))
            attempts.append(files.failed.acquire(timeout=0.1))

        reading: list[Future[LogSlice]] = []
        log.advance_high_watermark(3)
        log.update_log_start_offset(1)
        files.renaming = renaming
        log.delete_segments(list(log.segments)[:1])
        with pytest.raises(KafkaError):
            reading[0].result()
    assert attempts == [True, False]
    resources.descriptors.close()


def test_readers_do_not_wait_for_the_sync_of_a_truncation(tmp_path: Path) -> None:
    """So no reader waits for the disk."""
    read: list[list[bytes | None]] = []

    class ReadingWhileSyncing(OsFiles):
        def fsync(self, descriptor: int) -> None:
            super().fsync(descriptor)
            if cutting:
                read.append([record.value for record in read_all(log)])

    cutting: list[bool] = []
    resources = make_resources(tmp_path, ReadingWhileSyncing())
    log = create_log(f"{tmp_path}/t-0", "t", 0, TOPIC_ID, LogConfig(), resources)
    for index in range(4):
        append(log, b"%d" % index)
    cutting.append(True)
    log.truncate_to(2)
    assert read[0] == [b"0", b"1"]
    resources.descriptors.close()


def test_readers_get_what_a_truncation_keeps_while_it_runs(tmp_path: Path) -> None:
    read: list[list[bytes | None]] = []

    class ReadingWhileCutting(OsFiles):
        def rename(self, source: str, target: str) -> None:
            super().rename(source, target)
            if cutting:
                with log.read(3, 1000, log.log_end_offset) as slice_:
                    read.append([record.value for record in records_in(slice_.read())])

    cutting: list[bool] = []
    resources = make_resources(tmp_path, ReadingWhileCutting())
    size = len(batch(b"0"))
    log = create_log(f"{tmp_path}/t-0", "t", 0, TOPIC_ID, LogConfig(segment_bytes=3 * size), resources)
    for index in range(9):
        append(log, b"%d" % index)
    cutting.append(True)

    log.truncate_to(5)

    assert read
    assert all(each == [b"3", b"4"] for each in read)
    resources.descriptors.close()


class BetweenLooks(ManualClock):
    """A clock that calls `change` once, when it is read."""

    def __init__(self) -> None:
        super().__init__(NOW)
        self.change: Callable[[], object] = lambda: None

    def time_ms(self) -> int:
        change, self.change = self.change, lambda: None
        change()
        return super().time_ms()


@pytest.mark.parametrize("look", [Log.segments_to_delete, Log.cleanable_part])
def test_the_age_of_segments_that_are_deleted_meanwhile(tmp_path: Path, look: Callable[[Log], object]) -> None:
    """The log directory stays online: their files have gone because the log has changed."""
    clock = BetweenLooks()
    resources = make_resources(tmp_path, clock=clock)
    config = LogConfig(segment_bytes=100, retention_ms=1000, min_compaction_lag_ms=1, file_delete_delay_ms=0)
    log = create_log(f"{tmp_path}/t-0", "t", 0, TOPIC_ID, config, resources)
    for _ in range(4):
        append(log, b"v", timestamp=-1)
    log.advance_high_watermark(4)

    def delete() -> None:
        log.update_log_start_offset(2)
        log.delete_segments(list(log.segments)[:2])
        resources.deletions.run_due()

    clock.change = delete
    look(log)
    assert resources.failure.error is None
    assert log.first_base_offset == 2
    resources.descriptors.close()

"""One thread appends, rolls and cuts, one reads, one syncs: what is below the end offset can always be read, whole."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from broker.storage.log import Log
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch_headers
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, append, batch, records_in

COUNT = 3000


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
        except BaseException as error:  # noqa: BLE001 - a thread has nobody else to tell
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


def test_reading_while_the_log_is_cut(new_log: NewLog) -> None:
    """A reader sees a record as it was, or is told that the offset is out of range, and nothing else."""
    log = new_log(segment_bytes=1000, index_interval_bytes=100, file_delete_delay_ms=0)
    done = Event()
    size = len(batch(b"%06d" % 0))

    def cutting() -> None:
        for round_ in range(60):
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

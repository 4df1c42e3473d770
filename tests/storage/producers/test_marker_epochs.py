"""The epochs of transaction markers, and the first sequence of a producer, by the version of its transactions."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, batch, marker

PRODUCER = 1000
ACCEPTED = None
FENCED = ErrorCode.INVALID_PRODUCER_EPOCH


def write(log: Log, epoch: int, sequence: int = 0, *, version: int = 0, transactional: bool = True) -> None:
    data = batch(
        b"v", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, is_transactional=transactional
    )
    log.append_as_leader(data, 0, NOW, Origin.CLIENT, version)


def end(log: Log, epoch: int, version: int, coordinator_epoch: int = 0) -> None:
    data = marker(PRODUCER, epoch, commit=True, coordinator_epoch=coordinator_epoch)
    log.append_as_leader(data, 0, NOW, Origin.COORDINATOR, version)


def outcome(function: Any, *args: Any, **options: Any) -> ErrorCode | None:
    try:
        function(*args, **options)
    except KafkaError as error:
        return error.code
    return ACCEPTED


@pytest.mark.parametrize(
    ("version", "before", "same", "after"),
    [(0, FENCED, ACCEPTED, ACCEPTED), (1, FENCED, ACCEPTED, ACCEPTED), (2, FENCED, FENCED, ACCEPTED)],
)
def test_a_marker_needs_the_epoch_of_its_version(
    new_log: NewLog, version: int, before: ErrorCode | None, same: ErrorCode | None, after: ErrorCode | None
) -> None:
    for epoch, expected in ((4, before), (5, same), (6, after)):
        log = new_log()
        write(log, 5)
        assert outcome(end, log, epoch, version) is expected
        log.advance_high_watermark(log.log_end_offset)
        assert log.last_stable_offset == (0 if expected else 2), "a refused marker ends nothing"


def test_a_repeated_marker_of_version_2_is_accepted_once_the_transaction_has_ended(new_log: NewLog) -> None:
    log = new_log()
    write(log, 5)
    end(log, 6, 2)

    end(log, 6, 2)

    assert outcome(end, log, 5, 2) is FENCED
    assert outcome(end, log, 6, 2, coordinator_epoch=-1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_of_an_older_epoch_does_not_touch_the_next_transaction(new_log: NewLog) -> None:
    log = new_log()
    write(log, 5)
    end(log, 6, 2)
    write(log, 6)

    assert outcome(end, log, 6, 2) is FENCED

    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2


def test_a_batch_of_an_older_epoch_does_not_touch_the_next_transaction(new_log: NewLog) -> None:
    log = new_log()
    write(log, 5)
    end(log, 6, 2)

    assert outcome(write, log, 5, 1) is FENCED
    write(log, 6)
    assert outcome(write, log, 5, 1) is FENCED
    assert log.log_end_offset == 3


def test_the_last_epoch_ends_a_transaction_that_has_it(new_log: NewLog) -> None:
    """Kafka's brokers of some versions opened such transactions."""
    log = new_log()
    write(log, 32767)

    end(log, 32767, 2)

    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2


def test_an_unknown_producer_of_version_2_begins_with_sequence_0(new_log: NewLog) -> None:
    log = new_log()
    assert outcome(write, log, 0, 1, version=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    write(log, 0, 0, version=2)
    write(log, 0, 1, version=2)
    assert outcome(write, new_log(), 0, 7, version=1) is ACCEPTED


def test_the_first_batch_after_a_marker_of_version_2_has_sequence_0(new_log: NewLog) -> None:
    log = new_log()
    end(log, 6, 2)
    assert outcome(write, log, 6, 1, version=2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outcome(write, log, 6, 0, version=2) is ACCEPTED

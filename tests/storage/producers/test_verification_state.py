"""The verification of transactions before the first batch, on a log."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.producers.verification_state import IN_TRANSACTION, Verification
from odradek.broker.storage.resources import LogResources
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, batch, marker

PRODUCER = 1000


def begin(log: Log, epoch: int = 0, sequence: int = 0) -> Verification:
    return log.producers.begin_verification(PRODUCER, epoch, sequence, NOW) or IN_TRANSACTION


def write(log: Log, verification: Verification, sequence: int = 0, epoch: int = 0, **options: Any) -> int:
    data = batch(b"v", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, is_transactional=True)
    return log.append_as_leader(data, 0, NOW, Origin.CLIENT, 2, verification).base_offset


def end(log: Log, epoch: int) -> None:
    log.append_as_leader(marker(PRODUCER, epoch, commit=False), 0, NOW, Origin.COORDINATOR, 2)


def test_the_first_batch_ends_the_verification_and_opens_the_transaction(new_log: NewLog) -> None:
    log = new_log()
    verification = begin(log)
    assert verification is not IN_TRANSACTION
    assert begin(log, sequence=1) is verification

    assert write(log, verification) == 0
    assert begin(log, sequence=1) is IN_TRANSACTION
    assert write(log, verification, 1) == 1, "the transaction is open"
    assert write(log, IN_TRANSACTION, 2) == 2
    assert len(log.producers.verifications) == 0


def test_a_marker_ends_the_verification(new_log: NewLog) -> None:
    log = new_log()
    verification = begin(log)
    end(log, 1)

    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        write(log, verification)
    with pytest.raises(KafkaError, match="INVALID_TXN_STATE"):
        write(log, verification, epoch=1)
    assert begin(log, epoch=1) is not verification
    assert log.log_end_offset == 1


def test_an_older_epoch_needs_no_verification(new_log: NewLog) -> None:
    log = new_log()
    write(log, begin(log, epoch=3), epoch=3)

    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        begin(log, epoch=2)
    assert len(log.producers.verifications) == 0


def test_a_batch_of_an_open_transaction_that_ended_meanwhile_opens_no_other(new_log: NewLog) -> None:
    log = new_log()
    write(log, begin(log))
    verification = begin(log, sequence=1)
    end(log, 1)

    for epoch, code in ((0, "INVALID_PRODUCER_EPOCH"), (1, "INVALID_TXN_STATE")):
        with pytest.raises(KafkaError, match=code):
            write(log, verification, 1, epoch)
    log.advance_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2


def test_a_repeated_batch_of_a_transaction_is_a_duplicate(new_log: NewLog) -> None:
    log = new_log()
    write(log, begin(log))
    assert write(log, begin(log)) == 0
    assert log.log_end_offset == 1


def test_no_batch_overtakes_one_whose_verification_failed(new_log: NewLog) -> None:
    log = new_log()
    begin(log, sequence=0)  # fails, and its client sends the batch again
    verification = begin(log, sequence=3)

    with pytest.raises(KafkaError) as caught:
        write(log, verification, 3)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(log, begin(log, sequence=0), 0) == 0


def test_the_lowest_sequence_is_that_of_the_newest_epoch(new_log: NewLog) -> None:
    log = new_log()
    write(log, begin(log), 0)
    end(log, 1)
    begin(log, epoch=1, sequence=0)
    verification = begin(log, epoch=2, sequence=0)
    begin(log, epoch=1, sequence=0)
    assert (verification.epoch, verification.lowest_sequence) == (2, 0)
    assert write(log, verification, 0, epoch=2) == 2


def test_without_a_verification_any_batch_opens_a_transaction(new_log: NewLog) -> None:
    log = new_log()
    data = batch(b"v", producer_id=PRODUCER, producer_epoch=0, base_sequence=7, is_transactional=True)
    assert log.append_as_leader(data, 0, NOW).base_offset == 0


def test_old_verifications_expire(new_log: NewLog, resources: LogResources) -> None:
    log = new_log(producer_id_expiration_ms=1000)
    begin(log)
    log.remove_expired_producers()
    assert len(log.producers.verifications) == 1

    clock = resources.clock
    assert isinstance(clock, ManualClock)
    clock.advance(1000)
    log.remove_expired_producers()

    assert len(log.producers.verifications) == 0

"""Idempotence and transactions of a log: rejections, duplicates, stable offsets."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.log import Log
from odradek.broker.storage.producers.producer_snapshots import CorruptSnapshotError, decode_snapshot, encode_snapshot
from odradek.broker.storage.producers.producer_state import ProducerEntry, preceding_sequence
from odradek.broker.storage.resources import LogResources
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import NOW, append, batch, marker, values_of

MAX_SEQUENCE = 2**31 - 1
PID = 1000


def write(
    log: Log, sequence: int, *values: bytes, epoch: int = 0, producer_id: int = PID, transactional: bool = False
) -> Any:
    data = batch(
        *(values or (b"v",)),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    return log.append_as_leader(data, 0, NOW)


def end(log: Log, *, commit: bool, epoch: int = 0, producer_id: int = PID, coordinator_epoch: int = 0) -> Any:
    data = marker(producer_id, epoch, commit=commit, coordinator_epoch=coordinator_epoch)
    return log.append_as_leader(data, 0, NOW, Origin.COORDINATOR)


def refused(log: Log, code: ErrorCode, sequence: int, **options: Any) -> None:
    before = log.log_end_offset
    with pytest.raises(KafkaError) as error:
        write(log, sequence, **options)
    assert error.value.code is code
    assert log.log_end_offset == before


# ----------------------------------------------------------------------------------------------------------- sequences


def test_a_batch_sent_again_gets_its_first_offsets(new_log: NewLog) -> None:
    log = new_log()
    for index in range(7):
        write(log, 2 * index, b"a", b"b")
    for index in range(2, 7):
        again = write(log, 2 * index, b"a", b"b")
        assert again.duplicate
        assert (again.base_offset, again.last_offset, again.records_count) == (2 * index, 2 * index + 1, 2)
        assert again.log_append_time == NOW + 1  # as Kafka: the batch's largest timestamp
    assert log.log_end_offset == 14
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2)  # older than the last five
    assert write(log, 14).base_offset == 14


def test_only_the_next_sequence_is_in_order(new_log: NewLog) -> None:
    log = new_log()
    write(log, 0)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 2)
    write(log, 1)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0 + MAX_SEQUENCE)
    assert write(log, 2).base_offset == 2


def test_an_unknown_producer_may_begin_anywhere(new_log: NewLog) -> None:
    log = new_log()
    assert write(log, 7).base_offset == 0
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 9)


def test_sequences_wrap(new_log: NewLog) -> None:
    log = new_log()
    write(log, MAX_SEQUENCE - 1, b"a", b"b", b"c")  # the last one has sequence 0
    assert write(log, MAX_SEQUENCE - 1, b"a", b"b", b"c").duplicate
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert write(log, 1).base_offset == 3
    assert preceding_sequence(1, 3) == MAX_SEQUENCE - 1


def test_a_new_epoch_starts_at_0_and_fences_the_old_one(new_log: NewLog) -> None:
    log = new_log()
    write(log, 0)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 1, epoch=1)
    write(log, 0, epoch=1)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 1, epoch=0)
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=0)  # was taken once, but of a past epoch
    assert write(log, 1, epoch=1).base_offset == 2


def test_producers_are_independent(new_log: NewLog) -> None:
    log = new_log()
    for index in range(3):
        write(log, index, producer_id=1)
        write(log, index, producer_id=2, epoch=5)
    assert write(log, 2, producer_id=1).duplicate
    assert write(log, 2, producer_id=2, epoch=5).duplicate
    assert len(log.producers) == 2


def test_idle_producers_expire(new_log: NewLog, resources: LogResources) -> None:
    log = new_log(producer_id_expiration_ms=1000)
    write(log, 0, producer_id=1)
    write(log, 0, producer_id=2, transactional=True)
    clock = resources.clock
    assert isinstance(clock, ManualClock)
    clock.advance(999)
    assert log.remove_expired_producers() == 0
    clock.advance(1)
    assert log.remove_expired_producers() == 1
    assert write(log, 5, producer_id=1).base_offset == 2
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 5, producer_id=2, transactional=True)  # in a transaction


def test_truncation_restores_the_earlier_state(new_log: NewLog) -> None:
    log = new_log(segment_bytes=200)
    for index in range(6):
        write(log, index)
    log.truncate_to(3)
    refused(log, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 6)
    assert write(log, 3).base_offset == 3


# -------------------------------------------------------------------------------------------------------- transactions


def test_an_open_transaction_holds_the_last_stable_offset(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"plain")
    write(log, 0, producer_id=1, transactional=True)
    write(log, 0, producer_id=2, transactional=True)
    write(log, 1, producer_id=1, transactional=True)
    log.advance_high_watermark(4)
    assert log.last_stable_offset == 1
    end(log, commit=True, producer_id=1)
    assert log.last_stable_offset == 1  # its marker is not below the high watermark
    log.advance_high_watermark(5)
    assert log.last_stable_offset == 2
    end(log, commit=False, producer_id=2)
    log.advance_high_watermark(6)
    assert log.last_stable_offset == 6


def test_the_last_stable_offset_is_never_above_the_high_watermark(new_log: NewLog) -> None:
    log = new_log()
    append(log, b"a")
    append(log, b"b")
    write(log, 0, transactional=True)
    log.advance_high_watermark(1)
    assert log.last_stable_offset == 1
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 2


def test_aborted_transactions_are_returned_by_range(new_log: NewLog) -> None:
    log = new_log(segment_bytes=300)
    for index in range(4):  # offsets 3i, 3i + 1 and the marker at 3i + 2, over several segments
        write(log, 2 * index, transactional=True)
        write(log, 2 * index + 1, transactional=True)
        end(log, commit=index % 2 == 0)
    log.advance_high_watermark(12)
    assert log.segments_count > 2
    assert log.aborted_transactions(0, 12) == [(PID, 3), (PID, 9)]
    assert log.aborted_transactions(0, 3) == []
    assert log.aborted_transactions(5, 6) == [(PID, 3)]
    assert log.aborted_transactions(6, 10) == [(PID, 9)]
    with log.read(3, 10, 12) as data:
        assert (PID, 3) in log.aborted_transactions_of(3, data)


def test_a_transaction_over_several_segments(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100)
    write(log, 0, producer_id=1, transactional=True)
    write(log, 0, producer_id=2, transactional=True)
    end(log, commit=False, producer_id=2)
    append(log, b"x")
    end(log, commit=False, producer_id=1)
    assert log.segments_count == 5
    assert log.aborted_transactions(0, 5) == [(2, 1), (1, 0)]
    assert log.aborted_transactions(3, 4) == [(1, 0)]


def test_aborted_transactions_are_found_between_segments_without_any(new_log: NewLog) -> None:
    log = new_log(segment_bytes=100)
    for index in range(4):
        write(log, index, transactional=True)
        end(log, commit=index != 1)
        append(log, b"x")
    assert log.segments_count == 12
    assert [segment.base_offset for segment in log.segments.with_aborted(0)] == [4]
    assert not list(log.segments.with_aborted(5))
    write(log, 4, transactional=True)
    end(log, commit=False)  # in the active segment
    assert [segment.base_offset for segment in log.segments.with_aborted(5)] == [13]
    append(log, b"x")
    assert [segment.base_offset for segment in log.segments.with_aborted(5)] == [13], "which it was"
    log.truncate_to(13)
    assert not list(log.segments.with_aborted(5))


def test_a_batch_that_is_not_transactional_is_rejected_in_a_transaction(new_log: NewLog) -> None:
    log = new_log()
    write(log, 0, transactional=True)
    refused(log, ErrorCode.INVALID_TXN_STATE, 1)
    end(log, commit=True)
    assert write(log, 1).base_offset == 2


def test_a_marker_without_a_transaction_only_moves_the_epochs(new_log: NewLog) -> None:
    log = new_log()
    end(log, commit=False, epoch=4, coordinator_epoch=7)
    log.advance_high_watermark(1)
    assert (log.last_stable_offset, log.aborted_transactions(0, 1)) == (1, [])
    refused(log, ErrorCode.INVALID_PRODUCER_EPOCH, 0, epoch=3)
    with pytest.raises(KafkaError) as error:
        end(log, commit=True, epoch=4, coordinator_epoch=6)
    assert error.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(KafkaError) as error:
        end(log, commit=True, epoch=3, coordinator_epoch=7)
    assert error.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(log, 0, epoch=4).base_offset == 1


def test_clients_may_not_end_transactions(new_log: NewLog) -> None:
    log = new_log()
    write(log, 0, transactional=True)
    with pytest.raises(KafkaError) as error:
        log.append_as_leader(marker(PID, 0, commit=True), 0, NOW)
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_followers_replay_transactions(new_log: NewLog) -> None:
    leader, follower = new_log(segment_bytes=200), new_log()
    write(leader, 0, b"kept", transactional=True)
    end(leader, commit=True)
    write(leader, 1, b"dropped", transactional=True)
    end(leader, commit=False)
    write(leader, 2, b"open", transactional=True)
    while follower.log_end_offset < leader.log_end_offset:
        with leader.read(follower.log_end_offset, 1 << 20, leader.log_end_offset) as data:
            follower.append_as_follower(bytearray(data.read()))
    follower.advance_high_watermark(5)
    assert follower.last_stable_offset == 4
    assert follower.aborted_transactions(0, 4) == [(PID, 2)]
    assert values_of(follower) == [b"kept", b"dropped", b"open"]


def test_truncation_reopens_a_transaction(new_log: NewLog) -> None:
    log = new_log()
    write(log, 0, transactional=True)
    end(log, commit=False)
    log.advance_high_watermark(2)
    log.truncate_to(1)
    assert log.last_stable_offset == 0
    assert log.aborted_transactions(0, 1) == []
    end(log, commit=True)
    log.advance_high_watermark(2)
    assert (log.last_stable_offset, log.aborted_transactions(0, 2)) == (2, [])


# ------------------------------------------------------------------------------------------------------------ snapshots


def test_a_snapshot_is_read_back_as_it_was() -> None:
    entry = ProducerEntry(7, epoch=3, coordinator_epoch=2, last_timestamp=NOW, transaction_first_offset=40)
    bare = ProducerEntry(8, epoch=0)
    (again, bare_again) = decode_snapshot(encode_snapshot([entry, bare]))
    assert (again.producer_id, again.epoch, again.coordinator_epoch) == (7, 3, 2)
    assert (again.last_timestamp, again.transaction_first_offset) == (NOW, 40)
    assert (bare_again.last_sequence, bare_again.last_offset, len(bare_again.batches)) == (-1, -1, 0)


def test_every_damaged_snapshot_is_corrupt() -> None:
    sound = encode_snapshot([ProducerEntry(7, epoch=3)])
    damaged = [sound[:length] for length in range(len(sound))]
    damaged += [sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :] for at in range(len(sound))]
    for data in [*damaged, sound + b"\0"]:
        with pytest.raises(CorruptSnapshotError):
            decode_snapshot(data)


def test_many_open_transactions_hold_the_last_stable_offset_in_turn(new_log: NewLog) -> None:
    count = 300
    log = new_log()
    for producer_id in range(count):
        write(log, 0, producer_id=producer_id, transactional=True)
    for producer_id in [*range(0, count, 2), *range(count - 1, 0, -2)]:
        end(log, commit=False, producer_id=producer_id)
    assert log.log_end_offset == 2 * count

    seen = []
    for offset in range(2 * count + 1):
        log.advance_high_watermark(offset)
        seen.append(log.last_stable_offset)

    ends = {first: count + first // 2 for first in range(0, count, 2)}
    ends.update({first: 2 * count - 1 - first // 2 for first in range(1, count, 2)})
    stable = [min([first for first in ends if ends[first] >= high], default=high) for high in range(2 * count + 1)]
    assert seen == [min(high, offset) for high, offset in enumerate(stable)]

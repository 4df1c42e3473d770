"""The appends of a follower: the batches of its leader, unchanged."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import append, follower_batch, read_all
from tests.storage.test_old_formats import OLD, message


def code_of(error: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return error.value.code


def test_a_follower_keeps_offsets_and_epochs(new_log: NewLog) -> None:
    leader, follower = new_log(), new_log()
    for epoch, values in enumerate([(b"a", b"b"), (b"c",), (b"d", b"e", b"f")]):
        append(leader, *values, leader_epoch=epoch)
    with leader.read(0, 1 << 20, 6) as data:
        fetched = data.read()
    info = follower.append_as_follower(bytearray(fetched[:-1]))
    assert info is not None
    assert (info.base_offset, info.last_offset, info.records_count) == (0, 2, 3)
    follower.append_as_follower(bytearray(fetched[info.size_bytes :]))
    assert read_all(follower) == read_all(leader)
    assert [follower.epoch_for_offset(offset) for offset in range(6)] == [0, 0, 1, 2, 2, 2]
    assert follower.append_as_follower(bytearray(fetched[:20])) is None


def test_a_follower_may_skip_offsets_but_not_go_back(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_follower(bytearray(follower_batch(b"a", base_offset=5)))
    assert log.log_end_offset == 6
    with pytest.raises(KafkaError) as error:
        log.append_as_follower(bytearray(follower_batch(b"b", base_offset=5)))
    assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE
    descending = follower_batch(b"c", base_offset=9) + follower_batch(b"d", base_offset=8)
    with pytest.raises(KafkaError) as error:
        log.append_as_follower(bytearray(descending))
    assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_end_offset == 6
    assert [r.offset for r in read_all(log)] == [5]


def test_a_follower_rejects_a_wrong_checksum(new_log: NewLog) -> None:
    log = new_log()
    data = bytearray(follower_batch(b"a", base_offset=0))
    data[-1] ^= 1
    with pytest.raises(KafkaError) as error:
        log.append_as_follower(data)
    assert code_of(error) is ErrorCode.CORRUPT_MESSAGE


def test_a_follower_keeps_messages_of_old_formats(new_log: NewLog) -> None:
    log = new_log()
    new = follower_batch(b"new", base_offset=6, leader_epoch=3)

    info = log.append_as_follower(bytearray(b"".join(OLD) + new + OLD[0][:-1]))

    assert info is not None
    assert (info.last_offset, info.size_bytes, log.log_end_offset) == (6, len(b"".join(OLD)) + len(new), 7)
    for offset, stored in enumerate([OLD[0], OLD[1], OLD[2], OLD[2], OLD[2], OLD[3], new]):
        with log.read(offset, 1, 7) as data:
            assert data.read() == stored
    assert [log.epoch_for_offset(offset) for offset in (0, 5, 6)] == [-1, -1, 3]


def test_a_segment_that_begins_with_a_wrapper_begins_with_its_first_offset(new_log: NewLog) -> None:
    log = new_log(segment_bytes=1)

    for data in OLD:
        log.append_as_follower(bytearray(data))

    assert [segment.base_offset for segment in log.segments] == [0, 1, 2, 5]
    for offset, stored in enumerate([OLD[0], OLD[1], OLD[2], OLD[2], OLD[2], OLD[3]]):
        with log.read(offset, 1, 6) as stored_there:
            assert stored_there.read() == stored


def test_after_an_old_message_no_epoch_is_known(new_log: NewLog) -> None:
    """As in Kafka: otherwise the message would have the epoch of the batch before it."""
    log = new_log()
    log.append_as_follower(bytearray(follower_batch(b"a", base_offset=0, leader_epoch=2)))

    log.append_as_follower(bytearray(message(1, b"old")))

    assert [log.epoch_for_offset(offset) for offset in (0, 1)] == [-1, -1]


@pytest.mark.parametrize("position", [12, 16, 20])
def test_a_follower_rejects_a_damaged_old_message(new_log: NewLog, position: int) -> None:
    log = new_log()
    data = bytearray(OLD[1])
    data[position] ^= 0x40

    with pytest.raises(KafkaError) as error:
        log.append_as_follower(data)

    assert code_of(error) is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


def test_old_messages_do_not_go_back(new_log: NewLog) -> None:
    log = new_log()
    log.append_as_follower(bytearray(OLD[0] + OLD[1]))

    with pytest.raises(KafkaError) as error:
        log.append_as_follower(bytearray(OLD[1]))

    assert code_of(error) is ErrorCode.OFFSET_OUT_OF_RANGE

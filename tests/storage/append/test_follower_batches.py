"""The appends of a follower: the batches of its leader, unchanged."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode, KafkaError
from tests.storage.conftest import NewLog
from tests.storage.logs import append, follower_batch, read_all


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

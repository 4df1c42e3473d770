"""Offsets, timestamps and epochs of requests at both ends of their ranges. Apache Kafka 4.4.0 answers the same."""

from __future__ import annotations

from itertools import product

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from odradek.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.varint import INT64_MAX, INT64_MIN
from tests.handlers.group_members import GroupMember
from tests.handlers.requests import NOW, batch, create, fetch, produce, records_in
from tests.wire import Wire

INT64 = (INT64_MIN, INT64_MIN + 1, -2, -1, 0, 1, INT64_MAX - 1, INT64_MAX)
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
BELOW_NONE = (INT32_MIN, INT32_MIN + 1, -2)
"""Epochs below -1, the one of a request without an epoch."""
ABOVE = (1, INT32_MAX - 1, INT32_MAX)
"""Epochs above 0, the one of a new topic."""
END = 3


@pytest.fixture
async def topic(wire: Wire) -> str:
    """A topic with the offsets 0 to END, END not included, and the timestamps NOW, NOW + 1 and NOW + 2."""
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b", b"c"))
    return "t"


async def look_up(wire: Wire, topic: str, timestamp: int, *, epoch: int = -1) -> ListOffsetsPartitionResponse:
    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, epoch, timestamp)])
    [[row]] = [found.partitions for found in (await wire.ask(ListOffsetsRequest(-1, topics=[wanted]), 11)).topics]
    assert isinstance(row, ListOffsetsPartitionResponse)
    return row


async def end_of(wire: Wire, topic: str, epoch: int, *, current: int = -1) -> EpochEndOffset:
    wanted = OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(0, current, epoch)])
    [[row]] = [found.partitions for found in (await wire.ask(OffsetForLeaderEpochRequest(-1, [wanted]), 4)).topics]
    assert isinstance(row, EpochEndOffset)
    return row


async def test_a_fetch_begins_inside_the_log(wire: Wire, topic: str) -> None:
    for offset in (*INT64, END, END + 1):
        row = await fetch(wire, topic, offset)
        assert row.error_code == (ErrorCode.NONE if 0 <= offset <= END else ErrorCode.OFFSET_OUT_OF_RANGE), offset


async def test_the_log_start_that_a_consumer_sends_has_no_meaning(wire: Wire, topic: str) -> None:
    for start in INT64:
        assert len(records_in(await fetch(wire, topic, log_start_offset=start))) == END, start


async def test_records_are_deleted_up_to_an_offset_of_the_log(wire: Wire, topic: str) -> None:
    for offset in (*(offset for offset in INT64 if offset != -1), END, END + 1, -1):
        wanted = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])
        [[row]] = [found.partitions for found in (await wire.ask(DeleteRecordsRequest([wanted], 5000), 2)).topics]
        expected = (ErrorCode.NONE, END if offset == -1 else offset)
        if not -1 <= offset <= END:
            expected = (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert (row.error_code, row.low_watermark) == expected, offset


async def test_offsets_by_timestamp(wire: Wire, topic: str) -> None:
    expected = {
        **dict.fromkeys((INT64_MIN, INT64_MIN + 1, -7), (ErrorCode.UNSUPPORTED_VERSION, -1, -1)),
        **dict.fromkeys((0, 1, NOW), (ErrorCode.NONE, NOW, 0)),
        NOW + 1: (ErrorCode.NONE, NOW + 1, 1),
        **dict.fromkeys((NOW + 3, INT64_MAX - 1, INT64_MAX), (ErrorCode.NONE, -1, -1)),
    }
    for timestamp, found in expected.items():
        row = await look_up(wire, topic, timestamp)
        assert (row.error_code, row.timestamp, row.offset) == found, timestamp


async def test_the_current_leader_epoch_of_a_request(wire: Wire, topic: str) -> None:
    """Each epoch but -1 is compared; a Fetch has none if it is below 0."""
    for epoch in (*BELOW_NONE, -1, 0, *ABOVE):
        expected = ErrorCode.NONE if epoch <= 0 else ErrorCode.UNKNOWN_LEADER_EPOCH
        assert (await fetch(wire, topic, current_leader_epoch=epoch)).error_code == expected, epoch
        expected = ErrorCode.FENCED_LEADER_EPOCH if epoch < -1 else expected
        assert (await look_up(wire, topic, -1, epoch=epoch)).error_code == expected, epoch
        assert (await end_of(wire, topic, 0, current=epoch)).error_code == expected, epoch


async def test_the_end_of_an_epoch(wire: Wire, topic: str) -> None:
    for epoch in (*BELOW_NONE, -1, 0, *ABOVE):
        expected = (epoch, 0) if epoch < -1 else (0, END) if epoch == 0 else (-1, -1)
        row = await end_of(wire, topic, epoch)
        assert (row.error_code, row.leader_epoch, row.end_offset) == (ErrorCode.NONE, *expected), epoch


async def test_every_offset_can_be_committed(wire: Wire, committer: GroupMember) -> None:
    """Whether the partition has it is decided by the consumer that begins there."""
    for offset, epoch in product(INT64, (INT32_MIN, -2, -1, 0, INT32_MAX)):
        rows = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset, epoch)])]
        committed = await wire.ask(OffsetCommitRequest(committer.group_id, topics=rows), 7)
        assert committed.topics[0].partitions[0].error_code == ErrorCode.NONE
        found = await wire.ask(OffsetFetchRequest(committer.group_id, [OffsetFetchRequestTopic("t", [0])]), 7)
        [row] = found.topics[0].partitions
        assert (row.committed_offset, row.committed_leader_epoch) == (offset, epoch)


async def test_a_commit_may_have_any_retention(wire: Wire, committer: GroupMember) -> None:
    for retention_ms in INT64:
        rows = [OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])]
        request = OffsetCommitRequest(committer.group_id, retention_time_ms=retention_ms, topics=rows)
        answer = await wire.ask(request, 4)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, retention_ms


ALL = (*INT64, NOW)
OLD = tuple(timestamp for timestamp in ALL if -2 <= timestamp <= NOW)


@pytest.mark.parametrize(
    ("configs", "accepted"),
    [
        ({}, OLD),
        ({"message_timestamp_after_max_ms": str(INT64_MAX)}, ALL),
        ({"message_timestamp_before_max_ms": "1000"}, (-1,)),
        ({"message_timestamp_before_max_ms": "0", "message_timestamp_after_max_ms": "0"}, (-1,)),
    ],
    ids=["default", "any", "new", "now"],
)
async def test_timestamps_of_records(wire: Wire, configs: dict[str, str], accepted: tuple[int, ...]) -> None:
    await create(wire, "t", **configs)
    for timestamp in ALL:
        builder = BatchBuilder()
        builder.append(timestamp, None, b"v")
        code = (await produce(wire, "t", bytes(builder.build()))).error_code
        assert code == (ErrorCode.NONE if timestamp in accepted else ErrorCode.INVALID_TIMESTAMP), timestamp

    stored = [timestamp for timestamp in ALL if timestamp in accepted]
    assert [record.timestamp for record in records_in(await fetch(wire, "t"))] == stored
    for wanted in (0, 1, NOW, INT64_MAX - 1, INT64_MAX):
        row = await look_up(wire, "t", wanted)
        found = [(timestamp, offset) for offset, timestamp in enumerate(stored) if timestamp >= wanted]
        assert (row.timestamp, row.offset) == (found[0] if found else (-1, -1))


async def test_with_the_time_of_the_append_every_timestamp_is_replaced(wire: Wire) -> None:
    await create(wire, "t", message_timestamp_type="LogAppendTime")
    for timestamp in ALL:
        builder = BatchBuilder()
        builder.append(timestamp, None, b"v")
        assert (await produce(wire, "t", bytes(builder.build()))).error_code == ErrorCode.NONE
    assert all(record.timestamp > NOW for record in records_in(await fetch(wire, "t")))

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.handlers.requests import batch, create, produce
from tests.wire import Wire


async def end_of(
    wire: Wire, epoch: int, *, topic: str = "t", partition: int = 0, current: int = -1, version: int = 4
) -> tuple[int, int, int]:
    """Error code, leader epoch and end offset."""
    wanted = [OffsetForLeaderTopic(topic, [OffsetForLeaderPartition(partition, current, epoch)])]
    [found] = (await wire.ask(OffsetForLeaderEpochRequest(-1, wanted), version)).topics
    [row] = found.partitions
    assert row.partition == partition
    return row.error_code, row.leader_epoch, row.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_the_current_epoch_ends_at_the_log_end(wire: Wire, version: int) -> None:
    await create(wire, "t")
    assert await end_of(wire, 0, version=version) == (ErrorCode.NONE, 0, 0)

    await produce(wire, "t", batch(b"a", b"b"))
    assert await end_of(wire, 0, version=version) == (ErrorCode.NONE, 0, 2)


async def test_a_future_epoch_is_unknown(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    assert await end_of(wire, 1) == (ErrorCode.NONE, -1, -1)


async def test_another_leader_epoch_is_refused(wire: Wire) -> None:
    await create(wire, "t")

    assert await end_of(wire, 0, current=0) == (ErrorCode.NONE, 0, 0)
    assert await end_of(wire, 0, current=1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


async def test_partitions_that_do_not_exist_are_unknown(wire: Wire) -> None:
    await create(wire, "t")

    assert await end_of(wire, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert await end_of(wire, 0, topic="missing") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)

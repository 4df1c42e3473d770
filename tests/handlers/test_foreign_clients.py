"""Captured requests of clients in other languages that differ from those of the Java client."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.handlers.requests import create, fetch, produce, records_in
from tests.wire import Wire

# kafkajs 2.2.4: records of the times 5 and 1699999999999. It sorts the times as texts, so that the header says that
# the first is 1699999999999, and the largest 5.
KAFKAJS_TIMES = [5, 1_699_999_999_999]
KAFKAJS_PLAIN = bytes.fromhex(
    "00000000000000000000004c0000000002fddc648d0000000000010000018bcfe567ff0000000000000005ffffffffff"
    "ffffff000000000000000000021e00f39fabfef962000261066f6c6400140000020262066e657700"
)
KAFKAJS_GZIP = bytes.fromhex(
    "00000000000000000000006000000000021589c2d60001000000010000018bcfe567ff0000000000000005ffffffffff"
    "ffffff000000000000000000021f8b08000000000000039363f83c7ff5bf9f490c4c896cf939290c220c0c4c4c496c79"
    "a9e50c00d6c5a95d1b000000"
)


@pytest.mark.parametrize("records", [KAFKAJS_PLAIN, KAFKAJS_GZIP], ids=["plain", "gzip"])
async def test_timestamps_that_kafkajs_sorts_as_text_are_found(wire: Wire, records: bytes) -> None:
    await create(wire, "t")

    row = await produce(wire, "t", records, version=7)

    assert row.error_code == ErrorCode.NONE
    assert [record.timestamp for record in records_in(await fetch(wire, "t"))] == KAFKAJS_TIMES
    assert await offset_of_time(wire, 6) == 1
    assert await offset_of_time(wire, KAFKAJS_TIMES[-1] + 1) == -1


async def offset_of_time(wire: Wire, timestamp: int) -> int:
    """The offset of the first record of `t` that is not older."""
    topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=timestamp)])
    [answer] = (await wire.ask(ListOffsetsRequest(-1, topics=[topic]), 7)).topics
    [row] = answer.partitions
    assert row.error_code == ErrorCode.NONE
    offset: int = row.offset
    return offset

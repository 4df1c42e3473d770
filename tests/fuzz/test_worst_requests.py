"""A broker serves other clients during the worst requests; `python -m tests.fuzz.waiting` measures how fast."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.framing import SIZE_PREFIX
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.fuzz.waiting import PROPERTIES, prepare
from tests.fuzz.worst_of_transactions import worst_of_transactions
from tests.fuzz.worst_requests import WORST, Worst
from tests.wire import Wire

SIZE = 150_000
ATTEMPTS = 3
"""The operating system may stop a test for as long as a request takes."""
# The slowest requests before slices existed; `waiting` sends the others too.
TESTED = (
    "Metadata, unknown names", "Fetch, unknown partitions", "Fetch, a large session", "ListOffsets, unknown partitions",
    "ListOffsets, by timestamp", "CreateTopics, 10,002 topics", "CreateTopics, 9,999 topics",
    "CreateTopics, the same names", "CreatePartitions", "DeleteTopics", "DeleteRecords", "DescribeConfigs, the broker",
    "IncrementalAlterConfigs", "ElectLeaders", "AlterReplicaLogDirs", "DescribeProducers", "OffsetFetch, groups",
    "OffsetDelete", "LeaveGroup, members", "FindCoordinator", "DescribeGroups", "ConsumerGroupDescribe",
    "Produce, partitions without records", "AddPartitionsToTxn, partitions", "AddPartitionsToTxn, unknown partitions",
    "AddPartitionsToTxn, transactions", "TxnOffsetCommit, unknown partitions", "WriteTxnMarkers, forged ids",
)  # fmt: skip
KINDS = [*WORST, *worst_of_transactions(SIZE / 1_000_000)]
SHORT = 0.1
"""Seconds; shorter requests need no slices."""


@pytest.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker(PROPERTIES) as started:
        await prepare("127.0.0.1", started.port, partitions=50)
        yield started


@pytest.mark.fuzz
@pytest.mark.parametrize("worst", [each for each in KINDS if each.name in TESTED], ids=lambda worst: worst.name)
async def test_another_client_waits_less_than_half_of_a_bad_request(broker: Broker, worst: Worst) -> None:
    waits = []
    for _ in range(ATTEMPTS):
        longest, took = await _longest_wait(broker.port, worst)
        if longest < max(SHORT, took / 2):
            return
        waits.append((longest, took))
    pytest.fail(f"the longest wait and what the request took, in seconds: {waits}")


async def _longest_wait(port: int, worst: Worst) -> tuple[float, float]:
    """The longest wait of another client, and the time of the bad request, in seconds."""
    frame = worst.frame(SIZE)
    async with Wire("127.0.0.1", port) as attacker, Wire("127.0.0.1", port) as victim:
        began = time.monotonic()
        attack = asyncio.ensure_future(_send(attacker, worst, frame))
        longest = 0.0
        while not attack.done():
            sent = time.monotonic()
            await victim.ask(ApiVersionsRequest("victim", "1"), 3)
            longest = max(longest, time.monotonic() - sent)
        await attack
        return longest, time.monotonic() - began


async def _send(attacker: Wire, worst: Worst, frame: bytes) -> None:
    """Send a bad request and its follow-up, and wait for the response or the end of the connection."""
    try:
        attacker.writer.write(frame)
        answer = await _receive(attacker)
        if worst.follow is not None:
            attacker.writer.write(next(worst.follow(answer)))
            await _receive(attacker)
    except (ConnectionError, asyncio.IncompleteReadError):
        return


async def _receive(attacker: Wire) -> bytes:
    (size,) = SIZE_PREFIX.unpack(await attacker.reader.readexactly(SIZE_PREFIX.size))
    return await attacker.reader.readexactly(size)

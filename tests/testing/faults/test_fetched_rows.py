"""Rules for Fetch, with and without sessions, against a running broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.faults import Faults
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.broker.replicating import Cluster, three_brokers
from tests.handlers.requests import batch, create, fetch_request, parked, produce, values_in
from tests.wire import Wire

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
NONE = ErrorCode.NONE
HOUR_MS = 3_600_000


@pytest.mark.parametrize("version", [4, 12, 13, 18])
async def test_a_partition_of_a_fetch_fails_at_once_and_the_other_is_read(
    wire: Wire, faults: Faults, version: int
) -> None:
    topic_id = await create(wire, "t", partitions=2)
    await produce(wire, "t", batch(b"v"), 1)
    faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="t", partition=0)
    wanted = [FetchPartition(index, partition_max_bytes=1 << 20) for index in (0, 1)]
    request = FetchRequest(max_wait_ms=HOUR_MS, min_bytes=1 << 20, topics=[FetchTopic("t", topic_id, wanted)])

    [topic] = (await wire.ask(request, version)).responses

    failed, read = sorted(topic.partitions, key=lambda row: row.partition_index)
    assert (failed.error_code, failed.high_watermark) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert (read.error_code, values_in(read)) == (NONE, [b"v"])


@pytest.mark.parametrize("version", [12, 13])
async def test_a_partition_fails_in_a_session_whose_request_does_not_name_it(
    wire: Wire, faults: Faults, version: int
) -> None:
    topic_id = await create(wire, "t", partitions=2)
    await produce(wire, "t", batch(b"v"), 0)
    wanted = [FetchPartition(index, partition_max_bytes=1 << 20) for index in (0, 1)]
    full = FetchRequest(session_epoch=0, topics=[FetchTopic("t", topic_id, wanted)])
    session_id = (await wire.ask(full, version)).session_id
    assert session_id

    rule = faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="t", partition=0, times=1)
    again = FetchRequest(session_id=session_id, session_epoch=1, max_wait_ms=HOUR_MS, min_bytes=1)
    [topic] = (await wire.ask(again, version)).responses
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [(0, NOT_LEADER)]
    assert rule.hits == 1

    # The error has ended: the partition is read with the epoch that the client gave, and is news again.
    [topic] = (await wire.ask(FetchRequest(session_id=session_id, session_epoch=2), version)).responses
    [row] = topic.partitions
    assert (row.partition_index, row.error_code, values_in(row)) == (0, NONE, [b"v"])


async def test_a_session_forgets_and_adds_partitions_in_a_request_that_fails(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=3)
    await produce(wire, "t", batch(b"v"), 2)

    def topics(*indexes: int) -> list[FetchTopic]:
        return [FetchTopic("t", partitions=[FetchPartition(i, partition_max_bytes=1 << 20) for i in indexes])]

    session_id = (await wire.ask(FetchRequest(session_epoch=0, topics=topics(0, 1)), 12)).session_id
    rule = faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", topic="t", times=2)
    changing = FetchRequest(session_id=session_id, session_epoch=1, topics=topics(2))
    changing.forgotten_topics_data = [ForgottenTopic("t", partitions=[0])]
    [topic] = (await wire.ask(changing, 12)).responses
    assert [(row.partition_index, row.error_code) for row in topic.partitions] == [(1, NOT_LEADER), (2, NOT_LEADER)]

    # A session that does not exist has no partitions, so nothing fails.
    answer = await wire.ask(FetchRequest(session_id=session_id + 1, session_epoch=1), 12)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert rule.hits == 1
    rule.remove()
    [topic] = (await wire.ask(FetchRequest(session_id=session_id, session_epoch=2), 12)).responses
    assert [(row.partition_index, values_in(row)) for row in topic.partitions] == [(1, []), (2, [b"v"])]


async def test_a_fetch_as_a_whole_fails_in_the_field_of_its_answer(wire: Wire, faults: Faults) -> None:
    topic_id = await create(wire, "t")
    faults.fail("Fetch", "FETCH_SESSION_ID_NOT_FOUND")
    answer = await wire.ask(FetchRequest(topics=[FetchTopic("t", topic_id, [FetchPartition(0)])]), 13)
    assert (answer.error_code, answer.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


async def test_a_fetch_of_hundreds_of_partitions_fails_in_one(wire: Wire, faults: Faults) -> None:
    await create(wire, "t", partitions=300)
    faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="t", partition=299)
    wanted = [FetchPartition(index, partition_max_bytes=1 << 20) for index in range(300)]
    request = FetchRequest(max_wait_ms=HOUR_MS, min_bytes=1, topics=[FetchTopic("t", partitions=wanted)])
    [topic] = (await wire.ask(request, 12)).responses
    failed = {row.partition_index: row.error_code for row in topic.partitions if row.error_code}
    assert failed == {299: ErrorCode.KAFKA_STORAGE_ERROR}


async def test_a_fetch_that_waits_is_not_changed_by_a_later_rule(broker: Broker, wire: Wire, other: Wire) -> None:
    await create(wire, "t")
    await wire.send(fetch_request("t", max_wait_ms=HOUR_MS), 12)
    await parked(broker)
    faults = Faults(broker)
    rule = faults.fail("Fetch", "KAFKA_STORAGE_ERROR", optional=True)
    await produce(other, "t", batch(b"v"))
    [topic] = (await wire.receive(fetch_request("t"), 12)).responses
    assert topic.partitions[0].error_code == NONE
    assert rule.hits == 0
    faults.clear()


async def test_a_dropped_fetch_releases_the_files_that_it_has_read(
    broker: Broker, wire: Wire, other: Wire, faults: Faults
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"v" * 100_000))
    faults.drop("Fetch", "after")
    await wire.send(fetch_request("t"), 12)
    assert await wire.is_closed_by_peer()

    descriptors = broker.log_dir.resources.descriptors
    with descriptors.pinned(f"{broker.log_dir.path}/t-0/00000000000000000000.log"):
        assert descriptors.pin(f"{broker.log_dir.path}/t-0/00000000000000000000.log").pins == 2, "nobody else"


async def test_a_follower_whose_fetches_fail_makes_no_progress(tmp_path: Path) -> None:
    async with three_brokers(tmp_path, Cluster) as cluster:
        await cluster.create()
        faults = Faults(cluster.brokers[1])
        rule = faults.fail("Fetch", "KAFKA_STORAGE_ERROR", topic="t", partition=0)
        assert await cluster.produce(1, b"v") is NONE  # when the followers are out of sync
        await cluster.until(lambda: cluster.in_sync(1))
        assert rule.hits

        rule.remove()
        await cluster.until(lambda: cluster.in_sync(1, 2, 3))
        assert cluster.log_bytes(1) == cluster.log_bytes(2) == cluster.log_bytes(3)

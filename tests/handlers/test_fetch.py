from __future__ import annotations

import asyncio
import errno
import os

import pytest

from odradek.broker.broker import Broker
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.disk.files import OsFiles
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from tests.handlers.requests import NOW, batch, create, fetch, fetch_request, parked, produce, values_in
from tests.storage.logs import marker
from tests.wire import Wire

LONG_MS = 60_000
FIELD = "x" * 5000


@pytest.mark.parametrize("version", range(4, 13))
async def test_records_are_returned_as_stored(wire: Wire, version: int) -> None:
    await create(wire, "t")
    records = batch(b"a", b"b")
    await produce(wire, "t", records)

    row = await fetch(wire, "t", version=version)

    assert (row.error_code, row.high_watermark, row.last_stable_offset) == (ErrorCode.NONE, 2, 2)
    assert row.log_start_offset == (0 if version >= 5 else -1)
    assert row.preferred_read_replica == -1
    assert row.aborted_transactions is None
    assert bytes(row.records)[61:] == records[61:]


@pytest.mark.parametrize("version", range(13, 19))
async def test_from_version_13_on_topics_have_ids(wire: Wire, version: int) -> None:
    topic_id = await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    topics = [
        FetchTopic("", topic_id, [FetchPartition(0, partition_max_bytes=1000)]),
        FetchTopic("", bytes(range(16)), [FetchPartition(0, partition_max_bytes=1000)]),
    ]

    response = await wire.ask(FetchRequest(topics=topics), version)

    found, unknown = response.responses
    assert (found.topic_id, values_in(found.partitions[0])) == (topic_id, [b"a"])
    assert unknown.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_partitions_that_do_not_exist_are_unknown(wire: Wire) -> None:
    await create(wire, "t")

    assert (await fetch(wire, "missing")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (await fetch(wire, "t", partition=1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_offset_outside_the_log_is_out_of_range(wire: Wire) -> None:
    await create(wire, "t")

    row = await fetch(wire, "t", 1)

    assert row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (row.high_watermark, row.log_start_offset, bytes(row.records)) == (-1, -1, b"")


@pytest.mark.parametrize(("epoch", "code"), [(0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)])
async def test_another_leader_epoch_is_refused(wire: Wire, epoch: int, code: ErrorCode) -> None:
    await create(wire, "t")

    assert (await fetch(wire, "t", current_leader_epoch=epoch)).error_code == code


async def test_the_first_batch_is_returned_over_any_limit(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(FIELD.encode()))
    await produce(wire, "t", batch(b"b"))

    assert values_in(await fetch(wire, "t", max_bytes=1)) == [FIELD.encode()]
    assert values_in(await fetch(wire, "t", partition_max_bytes=1)) == [FIELD.encode()]
    assert values_in(await fetch(wire, "t", partition_max_bytes=0)) == [FIELD.encode()]


async def test_the_limit_of_the_request_holds_for_all_partitions_in_order(wire: Wire) -> None:
    await create(wire, "t", 3)
    records = batch(b"a")
    for index in range(3):
        await produce(wire, "t", records, index)
    wanted = [FetchPartition(index, partition_max_bytes=1000) for index in (2, 0, 1)]

    topics = [FetchTopic("t", partitions=wanted)]
    response = await wire.ask(FetchRequest(max_bytes=2 * len(records), topics=topics), 12)

    rows = response.responses[0].partitions
    assert [(row.partition_index, values_in(row)) for row in rows] == [(2, [b"a"]), (0, [b"a"]), (1, [])]


async def test_the_broker_has_a_limit_of_its_own() -> None:
    async with Broker({"fetch.max.bytes": "1024"}) as broker, Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        for _ in range(30):
            await produce(wire, "t", batch(b"x" * 100))

        row = await fetch(wire, "t", max_bytes=1_000_000)

        assert 0 < len(row.records) <= 1024


async def test_only_brokers_with_a_replica_may_fetch_as_followers(wire: Wire) -> None:
    await create(wire, "t")

    assert (await fetch(wire, "t", replica_id=9)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    topic_id = await create(wire, "u")
    topics = [FetchTopic("", topic_id, [FetchPartition(0, current_leader_epoch=0)])]
    request = FetchRequest(replica_state=ReplicaState(9, 1), topics=topics)
    [topic] = (await wire.ask(request, 15)).responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


async def test_a_session_returns_only_news(wire: Wire) -> None:
    await create(wire, "t", 3)
    wanted = [FetchPartition(index, partition_max_bytes=1000) for index in range(3)]
    topics = [FetchTopic("t", partitions=wanted)]
    opened = await wire.ask(FetchRequest(session_epoch=0, topics=topics), 12)
    await produce(wire, "t", batch(b"a"), 1)

    second = await wire.ask(FetchRequest(session_id=opened.session_id, session_epoch=1), 12)
    moved_on = [FetchTopic("t", partitions=[FetchPartition(1, fetch_offset=1, partition_max_bytes=1000)])]
    third = await wire.ask(FetchRequest(session_id=opened.session_id, session_epoch=2, topics=moved_on), 12)

    assert len(opened.responses[0].partitions) == 3
    assert [(row.partition_index, values_in(row)) for row in second.responses[0].partitions] == [(1, [b"a"])]
    assert third.responses == []


async def test_a_parked_session_fetch_is_woken_by_a_partition_that_the_request_does_not_name(
    broker: Broker, wire: Wire
) -> None:
    topic_id = await create(wire, "t", 2)
    wanted = [FetchPartition(index, partition_max_bytes=1000) for index in range(2)]
    topics = [FetchTopic("", topic_id, wanted)]
    opened = await wire.ask(FetchRequest(session_epoch=0, topics=topics), 18)
    request = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, session_id=opened.session_id, session_epoch=1)
    await wire.send(request, 18)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"a"), 1)
    response = await wire.receive(request, 18)

    assert [(row.partition_index, values_in(row)) for row in response.responses[0].partitions] == [(1, [b"a"])]


async def test_forgotten_partitions_are_not_read(wire: Wire) -> None:
    await create(wire, "t", 2)
    wanted = [FetchPartition(index, partition_max_bytes=1000) for index in range(2)]
    opened = await wire.ask(FetchRequest(session_epoch=0, topics=[FetchTopic("t", partitions=wanted)]), 12)
    await produce(wire, "t", batch(b"a"), 0)
    await produce(wire, "t", batch(b"b"), 1)

    forgotten = [ForgottenTopic("t", partitions=[0])]
    request = FetchRequest(session_id=opened.session_id, session_epoch=1, forgotten_topics_data=forgotten)
    [topic] = (await wire.ask(request, 12)).responses

    assert [(row.partition_index, values_in(row)) for row in topic.partitions] == [(1, [b"b"])]


@pytest.mark.parametrize(
    ("session_id", "epoch", "code"),
    [(0, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH), (1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)],
)
async def test_a_session_error_fails_the_whole_request(
    wire: Wire, session_id: int, epoch: int, code: ErrorCode
) -> None:
    await create(wire, "t")
    opened = await wire.ask(fetch_request("t", session_epoch=0), 12)

    request = FetchRequest(session_id=opened.session_id + session_id, session_epoch=epoch)
    response = await wire.ask(request, 12)

    assert (response.error_code, response.session_id, response.responses) == (code, 0, [])


async def test_a_read_committed_fetch_lists_aborted_transactions(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    partition = broker.services.partitions.get("t", 0)

    def append(records: bytes | memoryview, origin: Origin = Origin.CLIENT) -> None:
        partition.append_as_leader(memoryview(bytearray(records)), 1, NOW, origin)

    append(batch(b"before"))
    append(batch(b"lost", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True))
    append(marker(5, 0, commit=False), Origin.COORDINATOR)
    append(batch(b"open", producer_id=6, producer_epoch=0, base_sequence=0, is_transactional=True))

    committed = await fetch(wire, "t", isolation_level=1)
    everything = await fetch(wire, "t")

    assert (committed.high_watermark, committed.last_stable_offset) == (4, 3)
    assert committed.aborted_transactions == [AbortedTransaction(5, 1)]
    assert len(values_in(committed)) == 3
    assert everything.aborted_transactions is None
    assert len(values_in(everything)) == 4
    assert (await fetch(wire, "t", 3, isolation_level=1)).aborted_transactions == []


async def test_a_read_committed_fetch_is_not_woken_by_an_open_transaction(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    partition = broker.services.partitions.get("t", 0)
    request = fetch_request("t", isolation_level=1, max_wait_ms=LONG_MS)
    await wire.send(request, 12)
    await parked(broker)

    opening = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    partition.append_as_leader(memoryview(bytearray(opening)), 1, NOW)
    await asyncio.sleep(0)
    assert len(broker.services.fetch_purgatory) == 1
    ending = memoryview(bytearray(marker(5, 0, commit=True)))
    partition.append_as_leader(ending, 1, NOW, Origin.COORDINATOR)

    [topic] = (await wire.receive(request, 12)).responses
    assert topic.partitions[0].high_watermark == 2


async def test_an_error_in_a_parked_fetch_is_counted_once(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    request = fetch_request("t", max_wait_ms=LONG_MS)
    request.topics.append(FetchTopic("missing", partitions=[FetchPartition(0, partition_max_bytes=1000)]))

    await wire.send(request, 12)
    await parked(broker)
    async with Wire("127.0.0.1", broker.port) as other:
        await produce(other, "t", batch(b"a"))
    await wire.receive(request, 12)

    # One of the whole and one of each partition, as in Apache Kafka.
    assert broker.metrics.api("Fetch").errors == {ErrorCode.NONE: 2, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 1}


async def test_only_unexpected_errors_are_failed_requests(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a", b"b"))
    counted = broker.metrics.topic("t")
    assert (await fetch(wire, "t", offset=7)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (await fetch(wire, "t", current_leader_epoch=7)).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (counted.fetch_requests, counted.failed_fetch_requests) == (2, 0)

    with (broker.log_dir.path / "t-0" / "00000000000000000000.log").open("r+b") as log:
        log.write(b"\xff" * 30)

    assert (await fetch(wire, "t", offset=1)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert (counted.fetch_requests, counted.failed_fetch_requests) == (3, 1)


async def test_a_truncated_file_fails_its_partition_only(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", partitions=2)
    for index in range(2):
        await produce(wire, "t", batch(b"a"), partition=index)
    os.truncate(broker.services.partitions.get("t", 0).log.active_segment.log.path, 10)

    cut, whole = await fetch(wire, "t"), await fetch(wire, "t", partition=1)

    assert (cut.error_code, bytes(cut.records)) == (ErrorCode.CORRUPT_MESSAGE, b"")
    assert values_in(whole) == [b"a"]


async def test_records_that_cannot_be_read_are_a_storage_error(
    broker: Broker, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(OsFiles, "pread", fail)

    assert (await fetch(wire, "t")).error_code == ErrorCode.KAFKA_STORAGE_ERROR

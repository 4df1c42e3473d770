"""Fetches that wait in the purgatory, and fetches that do not wait."""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from tests.handlers.requests import batch, create, fetch, fetch_request, parked, produce, produce_request, values_in
from tests.wire import Wire

LONG_MS = 60_000


async def test_a_fetch_without_data_waits_for_the_next_append(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    request = fetch_request("t", max_wait_ms=LONG_MS)
    await wire.send(request, 12)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"a"))
    response = await wire.receive(request, 12)

    assert values_in(response.responses[0].partitions[0]) == [b"a"]
    assert len(broker.services.fetch_purgatory) == 0


async def test_an_unknown_partition_does_not_end_the_wait_for_others(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    wanted = [FetchPartition(index, partition_max_bytes=10_000) for index in range(2)]
    request = FetchRequest(max_wait_ms=LONG_MS, min_bytes=1, topics=[FetchTopic("t", partitions=wanted)])
    await wire.send(request, 12)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"a"))
    found, unknown = (await wire.receive(request, 12)).responses[0].partitions

    assert values_in(found) == [b"a"]
    assert (unknown.error_code, unknown.aborted_transactions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


async def test_a_fetch_of_unknown_partitions_is_answered_at_once(wire: Wire) -> None:
    row = await fetch(wire, "missing", max_wait_ms=LONG_MS)

    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_an_append_to_another_partition_wakes_no_fetch(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", 2)
    request = fetch_request("t", max_wait_ms=LONG_MS)
    await wire.send(request, 12)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"other"), partition=1)
        assert len(broker.services.fetch_purgatory) == 1
        await produce(producer, "t", batch(b"a"))

    assert values_in((await wire.receive(request, 12)).responses[0].partitions[0]) == [b"a"]


async def test_a_fetch_waits_for_min_bytes_over_all_its_partitions(broker: Broker, wire: Wire) -> None:
    await create(wire, "t", 2)
    records = batch(b"a")
    wanted = [FetchPartition(index, partition_max_bytes=10_000) for index in range(2)]
    topics = [FetchTopic("t", partitions=wanted)]
    request = FetchRequest(max_wait_ms=LONG_MS, min_bytes=3 * len(records), topics=topics)
    await produce(wire, "t", records)
    await wire.send(request, 12)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", records, partition=1)
        assert len(broker.services.fetch_purgatory) == 1
        await produce(producer, "t", records, partition=1)
    response = await wire.receive(request, 12)

    assert [values_in(row) for row in response.responses[0].partitions] == [[b"a"], [b"a", b"a"]]


async def test_a_fetch_from_an_older_segment_waits_no_longer(broker: Broker, wire: Wire) -> None:
    """The rest of its segment is all that one answer can have (Kafka's `DelayedFetch`, case F)."""
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))
    request = fetch_request("t", max_wait_ms=LONG_MS, min_bytes=1_000_000)
    await wire.send(request, 12)
    await parked(broker)

    await broker.services.partitions.get("t", 0).roll()
    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"b"))

    assert values_in((await wire.receive(request, 12)).responses[0].partitions[0]) == [b"a"]


async def test_a_fetch_that_waits_notices_that_its_offset_was_deleted(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    for value in (b"a", b"b"):
        await produce(wire, "t", batch(value))
    request = fetch_request("t", max_wait_ms=LONG_MS, min_bytes=1_000_000)
    await wire.send(request, 12)
    await parked(broker)

    broker.services.partitions.get("t", 0).log.update_log_start_offset(1)
    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"c"))

    assert (await wire.receive(request, 12)).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_after_its_timeout_a_fetch_returns_the_available_records(wire: Wire) -> None:
    await create(wire, "t")
    await produce(wire, "t", batch(b"a"))

    row = await fetch(wire, "t", max_wait_ms=1, min_bytes=1_000_000)

    assert values_in(row) == [b"a"]


async def test_a_fetch_without_partitions_is_answered_at_once(wire: Wire) -> None:
    response = await wire.ask(FetchRequest(max_wait_ms=LONG_MS, min_bytes=1), 12)

    assert response.responses == []


async def test_a_parked_fetch_is_cancelled_with_its_connection(broker: Broker) -> None:
    async with Wire("127.0.0.1", broker.port) as wire:
        await create(wire, "t")
        await wire.send(fetch_request("t", max_wait_ms=LONG_MS), 12)
        await parked(broker)

    await parked(broker, 0)


async def test_a_parked_fetch_is_answered_when_its_topic_is_deleted(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    request = fetch_request("t", max_wait_ms=LONG_MS)
    await wire.send(request, 12)
    await parked(broker)

    async with Wire("127.0.0.1", broker.port) as admin:
        await admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 4)
    response = await wire.receive(request, 12)

    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_later_answers_wait_for_a_parked_fetch_of_their_connection(broker: Broker, wire: Wire) -> None:
    await create(wire, "t")
    waiting = fetch_request("t", max_wait_ms=LONG_MS)
    await wire.send(waiting, 12)
    await parked(broker)
    await wire.send(produce_request("t", batch(b"mine")), 9)

    async with Wire("127.0.0.1", broker.port) as producer:
        await produce(producer, "t", batch(b"theirs"))
    first = await wire.receive(waiting, 12)
    second = await wire.receive(produce_request("t", None), 9)

    assert values_in(first.responses[0].partitions[0]) == [b"theirs"]
    assert second.responses[0].partition_responses[0].base_offset == 1

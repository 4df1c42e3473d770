"""The producer over a scripted network: the records in the logs, and their batches, requests and partitions."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from odradek.client import (
    ClientError,
    ConfigurationError,
    Producer,
    RecordTooLargeError,
    UnknownTopicError,
)
from odradek.protocol.messages.produce import ProduceRequest
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, now, numbers
from tests.client.virtual_time import simulated

# Batches and requests.


@simulated
async def test_records_reach_the_log_in_order_and_futures_have_their_offsets() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=200) as producer:
        sent = [await producer.send("t", value) for value in numbers(100)]
        metadata = await asyncio.gather(*sent)
    assert log.values() == numbers(100)
    assert [at.offset for at in metadata] == list(range(100))
    assert [at.timestamp for at in metadata] == [record.timestamp for record in log.records()]
    assert len(log.headers()) > 5
    network.check_buffers()


@simulated
async def test_all_fields_of_a_record_arrive() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, compression_type="zstd") as producer:
        headers = [("a", b"1"), ("a", None), ("ü", b"")]
        sent = await producer.send("t", b"value", key=b"key", headers=headers, timestamp=1234)
        assert await sent == ("t", 0, 0, 1234)
        await (await producer.send("t", None, key=b"gone", partition=0))
    first, second = log.records()
    assert (first.key, first.value, first.headers, first.timestamp) == (b"key", b"value", headers, 1234)
    assert second.value is None
    assert log.headers()[0].codec.name == "ZSTD"


@simulated
async def test_a_single_record_waits_for_linger_ms_and_a_full_batch_does_not() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network, linger_ms=1000, batch_size=200) as producer:
        start = now()
        await (await producer.send("t", b"lone"))
        assert now() - start == pytest.approx(1, abs=0.01)
        start = now()
        full = await producer.send("t", bytes(100))
        await producer.send("t", bytes(100))
        await full
        assert now() - start == pytest.approx(0, abs=0.01)


@simulated
async def test_flush_does_not_wait_for_linger_ms() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, linger_ms=1000) as producer:
        sent = await producer.send("t", b"1")
        await producer.flush()
        assert sent.done()
        assert now() < 0.1
        assert log.values() == [b"1"]


@simulated
async def test_one_request_contains_the_batches_of_all_partitions_of_a_broker() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network) as producer:
        for partition in (0, 1, 2):
            await producer.send("t", b"x", partition=partition)
    [request] = network.brokers[1].received(ProduceRequest)
    assert sorted(data.index for data in request.topic_data[0].partition_data) == [0, 1, 2]


@simulated
async def test_records_sent_in_a_row_share_a_request_without_linger() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network, linger_ms=0) as producer:
        await asyncio.gather(*[await producer.send("t", b"x", partition=number % 3) for number in range(30)])
    [request] = network.brokers[1].received(ProduceRequest)
    assert [len(data.partition_data) for data in request.topic_data] == [3]


@simulated
async def test_a_sender_yields_after_a_batch_of_any_partitions() -> None:
    """Otherwise a sender to many partitions would fill `buffer_memory` before the first request."""
    network = ScriptedNetwork()
    network.create("t", 50)
    async with Producer(network.bootstrap, network=network, linger_ms=0, batch_size=10_000) as producer:
        sent = [await producer.send("t", bytes(1000), partition=partition) for partition in range(50)]
        await asyncio.gather(*sent)
    requests = network.brokers[1].received(ProduceRequest)
    assert max(len(request.topic_data[0].partition_data) for request in requests) < 12


@simulated
async def test_no_more_than_max_in_flight_requests_wait_at_a_broker() -> None:
    network = ScriptedNetwork()
    network.create("t")
    broker = network.brokers[1]
    gate = Gate()
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0, max_in_flight=2) as producer:
        await (await producer.send("t", b"first"))
        broker.script("Produce", gate)
        sent = [await producer.send("t", value) for value in numbers(10)]
        await gate.reached.wait()
        [transport] = broker.transports
        assert transport.waiting_requests() == 1  # besides the one that the gate holds
        gate.open()
        await asyncio.gather(*sent)


@simulated
async def test_a_request_is_not_larger_than_max_request_size() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network, max_request_size=1000) as producer:
        for partition in (0, 1, 2):
            await producer.send("t", bytes(600), partition=partition)
    requests = network.brokers[1].received(ProduceRequest)
    assert [len(request.topic_data[0].partition_data) for request in requests] == [1, 1, 1]


@simulated
async def test_requests_to_brokers_without_topic_ids_name_topics() -> None:
    network = ScriptedNetwork(with_topic_ids=False)
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"1"))
    assert log.values() == [b"1"]


@simulated
async def test_old_brokers_get_old_versions() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    for name, version in (("Produce", 3), ("Metadata", 4), ("InitProducerId", 0), ("ApiVersions", 0)):
        network.brokers[1].limit(name, version)
    async with Producer(network.bootstrap, network=network) as producer:
        assert (await (await producer.send("t", b"1"))).offset == 0
    assert log.values() == [b"1"]


@simulated
async def test_responses_may_arrive_byte_by_byte() -> None:
    network = ScriptedNetwork(piece_size=1)
    [log] = network.create("t", 1)
    async with Producer(network.bootstrap, network=network, batch_size=0) as producer:
        sent = [await producer.send("t", value) for value in numbers(20)]
        assert [at.offset for at in await asyncio.gather(*sent)] == list(range(20))
    assert log.values() == numbers(20)


# Partitions.


@simulated
async def test_records_with_equal_keys_share_the_partition_that_java_would_choose() -> None:
    network = ScriptedNetwork()
    network.create("t", 7)
    async with Producer(network.bootstrap, network=network) as producer:
        sent = [await producer.send("t", b"", key=b"foobar") for _ in range(3)]
        assert {(await at).partition for at in sent} == {(-790332482 & 0x7FFFFFFF) % 7}


@simulated
async def test_records_without_a_key_fill_a_batch_before_the_next_partition() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network, batch_size=1000) as producer:
        # Fifty batches: with ten, one partition was never chosen in one of two hundred runs.
        sent = [await producer.send("t", bytes(100)) for _ in range(500)]
        partitions = [(await at).partition for at in sent]
    runs = [partition for index, partition in enumerate(partitions) if index % 10 == 0]
    assert partitions == [partition for partition in runs for _ in range(10)]
    assert all(here != there for here, there in pairwise(runs))
    assert set(runs) == {0, 1, 2}


@simulated
async def test_a_users_partitioner_chooses_and_its_exceptions_are_raised() -> None:
    network = ScriptedNetwork()
    logs = network.create("t", 3)

    def by_first_byte(topic: str, key: bytes | None, value: bytes | None, partitions: int, led: Sequence[int]) -> int:
        if not value:
            raise LookupError(f"a record of {topic} without a value")
        return value[0] % partitions

    async with Producer(network.bootstrap, network=network, partitioner=by_first_byte) as producer:
        for number in range(9):
            await producer.send("t", bytes([number]), key=b"the same")
        with pytest.raises(LookupError, match="a record of t without a value"):
            await producer.send("t", b"")
    assert [log.values() for log in logs] == [[bytes([first + 3 * turn]) for turn in range(3)] for first in range(3)]


@simulated
async def test_a_partition_that_does_not_exist_is_an_error() -> None:
    network = ScriptedNetwork()
    network.create("t", 2)
    async with Producer(network.bootstrap, network=network) as producer:
        with pytest.raises(UnknownTopicError, match=r"send a record on t-2: .*the topic has 2 partitions"):
            await producer.send("t", b"", partition=2)


@simulated
@pytest.mark.parametrize("is_refreshing", [False, True])
async def test_a_partition_that_was_added_is_used_at_once(is_refreshing: bool) -> None:
    network = ScriptedNetwork()
    network.create("t", 1)
    async with Producer(network.bootstrap, network=network, metadata_max_age_ms=1000) as producer:
        await producer.send_and_wait("t", b"")
        if is_refreshing:
            await asyncio.sleep(1)  # the request under way is older than the partition
        network.logs["t", 1] = Log("t", 1, 1)
        assert (await producer.send_and_wait("t", b"", partition=1)).partition == 1
        with pytest.raises(UnknownTopicError, match="the topic has 2 partitions"):
            await producer.send("t", b"", partition=-1)


# acks=0 and acks=1.


@simulated
async def test_acks_0_does_not_wait_and_returns_no_offset() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, acks=0, batch_size=0) as producer:
        sent = [await producer.send("t", value) for value in numbers(50)]
        assert {at.offset for at in await asyncio.gather(*sent)} == {-1}
        await asyncio.sleep(1)
    assert log.values() == numbers(50)
    assert log.headers()[0].producer_id == -1


@simulated
async def test_acks_1_excludes_idempotence() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, acks=1) as producer:
        await (await producer.send("t", b"1"))
    assert log.headers()[0].producer_id == -1
    assert network.brokers[1].received(ProduceRequest)[0].acks == 1
    with pytest.raises(ConfigurationError, match=r'acks is 1. idempotence needs acks="all"'):
        Producer(network.bootstrap, network=network, acks=1, enable_idempotence=True)


# Records that cannot be sent.


@simulated
async def test_a_value_that_is_not_bytes_raises_and_leaves_no_record() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        with pytest.raises(TypeError, match=r"^value must be bytes or None, not str"):
            await producer.send("t", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^key must be bytes or None, not int"):
            await producer.send("t", b"", key=7)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"send a record on t-0: .* does not fit into 64 bits"):
            await producer.send("t", b"", timestamp=1 << 70)
        await producer.flush()
        await (await producer.send("t", b"fine"))
    assert log.values() == [b"fine"]


@simulated
async def test_an_error_of_a_codec_fails_the_records_of_its_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise zlib.error("no memory")

    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, compression_type="gzip") as producer:
        with monkeypatch.context() as patches:
            patches.setattr(zlib, "compress", fail)
            refused = await producer.send("t", b"x")
            with pytest.raises(ClientError, match=r"encode records: error: no memory"):
                await refused
        await (await producer.send("t", b"y"))
    assert log.values() == [b"y"]


@simulated
async def test_a_record_above_max_request_size_is_refused_at_once() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(network.bootstrap, network=network, max_request_size=1000) as producer:
        with pytest.raises(RecordTooLargeError, match="2000 bytes, and max_request_size is 1000"):
            await producer.send("t", bytes(2000))


@simulated
async def test_a_topic_that_cannot_be_found_is_an_error_after_max_block_ms() -> None:
    network = ScriptedNetwork()
    network.create = lambda topic, partitions=1: []  # type: ignore[method-assign]
    async with Producer(network.bootstrap, network=network, max_block_ms=3000) as producer:
        with pytest.raises(
            UnknownTopicError, match=r"find a topic on nowhere at broker1:9092 .*: UNKNOWN_TOPIC_OR_PARTITION"
        ):
            await producer.send("nowhere", b"")
        assert now() == pytest.approx(3, abs=0.1)

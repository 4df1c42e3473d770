"""The producer over a scripted network: what is in the logs at the end, whatever happened on the way."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from client import (
    AuthorizationError,
    BrokerError,
    BufferFullError,
    ClientError,
    ClosedError,
    ConfigurationError,
    DeliveryTimeoutError,
    Producer,
    RecordTooLargeError,
    UnknownTopicError,
)
from client.partition_queue import MAX_EPOCH
from protocol.batch_builder import BatchBuilder
from protocol.errors import ErrorCode
from protocol.messages.init_producer_id import InitProducerIdResponse
from protocol.messages.produce import BatchIndexAndErrorMessage, LeaderIdAndEpoch, ProduceRequest, ProduceResponse
from tests.client.scripted_broker import Broker
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, drop_unread, now, numbers, serve_and_drop
from tests.client.virtual_time import simulated


def refuse(code: ErrorCode) -> Any:
    """Answer every partition of a Produce with this error, append nothing."""

    async def answer(broker: Broker, request: ProduceRequest) -> Any:
        broker.network.logs, logs = {}, broker.network.logs
        answer = await broker.serve(request)
        broker.network.logs = logs
        assert isinstance(answer, ProduceResponse)
        for topic in answer.responses:
            for row in topic.partition_responses:
                row.error_code = code
        return answer

    return answer


# Batches and requests.


@simulated
async def test_records_reach_the_log_in_order_and_futures_tell_where() -> None:
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
async def test_everything_of_a_record_arrives() -> None:
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
async def test_a_lone_record_waits_for_linger_ms_and_a_full_batch_does_not() -> None:
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
async def test_one_request_takes_the_batches_of_all_partitions_of_a_broker() -> None:
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
async def test_a_sender_gives_way_after_a_batch_of_whatever_partitions() -> None:
    """Otherwise one with many partitions would fill `buffer_memory` before anything is sent."""
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
        assert transport.waiting_requests() == 1  # and one that the gate holds
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
async def test_topics_go_by_name_to_brokers_without_topic_ids() -> None:
    network = ScriptedNetwork(with_topic_ids=False)
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"1"))
    assert log.values() == [b"1"]


@simulated
async def test_old_versions_are_spoken_to_old_brokers() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    for name, version in (("Produce", 3), ("Metadata", 4), ("InitProducerId", 0), ("ApiVersions", 0)):
        network.brokers[1].limit(name, version)
    async with Producer(network.bootstrap, network=network) as producer:
        assert (await (await producer.send("t", b"1"))).offset == 0
    assert log.values() == [b"1"]


@simulated
async def test_answers_may_come_in_pieces_of_one_byte() -> None:
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
async def test_records_without_a_key_fill_a_batch_before_they_go_to_another_partition() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network, batch_size=1000) as producer:
        # Fifty batches: with ten, a partition that chance never chose was seen once in two hundred runs.
        sent = [await producer.send("t", bytes(100)) for _ in range(500)]
        partitions = [(await at).partition for at in sent]
    runs = [partition for index, partition in enumerate(partitions) if index % 10 == 0]
    assert partitions == [partition for partition in runs for _ in range(10)]
    assert all(here != there for here, there in pairwise(runs))
    assert set(runs) == {0, 1, 2}


@simulated
async def test_a_function_of_the_user_chooses_and_what_it_raises_is_raised() -> None:
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
async def test_partitions_that_were_added_are_used_after_the_next_metadata() -> None:
    network = ScriptedNetwork()
    network.create("t", 1)
    async with Producer(network.bootstrap, network=network, metadata_max_age_ms=1000) as producer:
        await (await producer.send("t", b""))
        network.logs["t", 1] = Log("t", 1, 1)
        with pytest.raises(UnknownTopicError):
            await producer.send("t", b"", partition=1)
        await asyncio.sleep(1.1)
        assert (await (await producer.send("t", b"", partition=1))).partition == 1


# Failures on the way.


@simulated
async def test_a_batch_whose_request_was_lost_is_sent_again() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", drop_unread)
    async with Producer(network.bootstrap, network=network) as producer:
        assert (await (await producer.send("t", b"1"))).offset == 0
    assert log.values() == [b"1"]


@simulated
async def test_a_batch_whose_answer_was_lost_is_not_doubled() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", serve_and_drop)
    async with Producer(network.bootstrap, network=network) as producer:
        assert (await (await producer.send("t", b"1"))).offset == 0
        assert (await (await producer.send("t", b"2"))).offset == 1
    assert log.values() == [b"1", b"2"]
    first, again, _ = network.brokers[1].received(ProduceRequest)
    assert bytes(first.topic_data[0].partition_data[0].records) == bytes(again.topic_data[0].partition_data[0].records)


@pytest.mark.parametrize("lost", range(5))
@pytest.mark.parametrize("how", [drop_unread, serve_and_drop])
@simulated
async def test_order_is_kept_when_one_of_several_in_flight_is_lost(lost: int, how: Any) -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        network.brokers[1].script("Produce", *[Broker.serve] * lost, how)
        sent = [await producer.send("t", value) for value in numbers(20)]
        assert [at.offset for at in await asyncio.gather(*sent)] == list(range(1, 21))
    assert log.values() == [b"first", *numbers(20)]
    network.check_buffers()


@pytest.mark.parametrize("code", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER])
@simulated
async def test_order_is_kept_when_one_of_several_in_flight_is_refused_for_now(code: ErrorCode) -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        network.brokers[1].script("Produce", Broker.serve, refuse(code))
        sent = [await producer.send("t", value) for value in numbers(20)]
        await asyncio.gather(*sent)
    assert log.values() == [b"first", *numbers(20)]
    assert {header.producer_epoch for header in log.headers()} == {0}


@pytest.mark.parametrize("how", [Broker.serve, serve_and_drop])
@simulated
async def test_order_is_kept_when_the_first_batches_find_a_leader_that_is_not_ready(how: Any) -> None:
    """A leader takes any sequence of a producer that it does not know: the second batch must not be first."""
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), how)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        sent = [await producer.send("t", value) for value in numbers(20)]
        await asyncio.gather(*sent)
    assert log.values() == numbers(20)


@simulated
async def test_records_follow_the_leader() -> None:
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"1"))
        network.move(log, to=2)
        assert (await (await producer.send("t", b"2"))).offset == 1
    assert log.values() == [b"1", b"2"]


@simulated
async def test_a_refusal_that_names_the_new_leader_costs_no_pause() -> None:
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")

    async def name_the_leader(broker: Broker, request: ProduceRequest) -> Any:
        answer = await broker.serve(request)
        assert isinstance(answer, ProduceResponse)
        row = answer.responses[0].partition_responses[0]
        assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        row.current_leader = LeaderIdAndEpoch(log.leader, log.leader_epoch)
        return answer

    async with Producer(network.bootstrap, network=network, linger_ms=0, retry_backoff_ms=1000) as producer:
        await (await producer.send("t", b"1"))
        network.move(log, to=2)
        network.brokers[1].script("Produce", name_the_leader)
        start = now()
        await (await producer.send("t", b"2"))
        assert now() - start < 0.1
    assert log.values() == [b"1", b"2"]


@simulated
async def test_a_broker_that_is_down_for_a_while_delays_and_loses_nothing() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    broker = network.brokers[1]
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"1"))
        broker.go_down()
        sent = await producer.send("t", b"2")
        await asyncio.sleep(20)
        assert not sent.done()
        broker.come_up()
        start = now()
        assert (await sent).offset == 1
        assert now() - start < 3
    assert log.values() == [b"1", b"2"]


@simulated
async def test_a_broker_that_does_not_answer_is_asked_again_on_a_new_connection() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", Gate())
    async with Producer(network.bootstrap, network=network, request_timeout_ms=1000) as producer:
        sent = await producer.send("t", b"1")
        await sent
        assert 1 < now() < 2
    assert log.values() == [b"1"]


@simulated
async def test_what_is_refused_for_good_fails_and_the_rest_goes_on() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0) as producer:
        await (await producer.send("t", b"0"))
        network.brokers[1].script("Produce", refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        failed = await producer.send("t", b"1")
        sent = [await producer.send("t", value) for value in numbers(5)]
        with pytest.raises(
            AuthorizationError, match=r"send records on t-0 at broker1:9092 .*TOPIC_AUTHORIZATION_FAILED"
        ):
            await failed
        assert [at.offset for at in await asyncio.gather(*sent)] == list(range(1, 6))
    assert log.values() == [b"0", *numbers(5)]
    assert [header.producer_epoch for header in log.headers()] == [0, 1, 1, 1, 1, 1]  # a sequence is missing for good


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("2 records refused: record 0: no key", r"\(2 records refused: record 0: no key\)"),
        ("One or more records have been rejected", r"\(One or more records have been rejected; no key\)"),
        (None, r"\(no key\)"),
    ],
)
@simulated
async def test_of_the_reasons_for_single_records_the_first_is_told(message: str | None, told: str) -> None:
    network = ScriptedNetwork()
    network.create("t")
    answer_with_code = refuse(ErrorCode.INVALID_RECORD)

    async def answer(broker: Broker, request: ProduceRequest) -> Any:
        answer = await answer_with_code(broker, request)
        [row] = answer.responses[0].partition_responses
        row.error_message = message
        row.record_errors = [BatchIndexAndErrorMessage(index, "no key") for index in range(100)]
        return answer

    network.brokers[1].script("Produce", answer)
    async with Producer(network.bootstrap, network=network) as producer:
        with pytest.raises(BrokerError, match=rf"INVALID_RECORD {told}"):
            await (await producer.send("t", b"1"))


@simulated
async def test_a_batch_that_is_too_large_for_the_topic_is_split() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    log.max_message_bytes = 300
    async with Producer(network.bootstrap, network=network) as producer:
        sent = [await producer.send("t", value.ljust(50)) for value in numbers(40)]
        more = [await producer.send("t", value.ljust(50), timestamp=7) for value in numbers(40)]
        await producer.flush()
        assert all(one.done() for one in sent + more)
        assert [at.result().offset for at in sent + more] == list(range(80))
    assert log.values() == [value.ljust(50) for value in numbers(40) * 2]
    assert {header.producer_epoch for header in log.headers()} == {0}
    assert all(header.size <= 300 for header in log.headers())


@simulated
async def test_a_single_record_that_is_too_large_for_the_topic_fails() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    log.max_message_bytes = 300
    async with Producer(network.bootstrap, network=network) as producer:
        sent = [await producer.send("t", value) for value in (b"1", bytes(400), b"3")]
        outcome = await asyncio.gather(*sent, return_exceptions=True)
    assert isinstance(outcome[1], RecordTooLargeError)
    assert "max.message.bytes" in str(outcome[1])
    assert log.values() == [b"1", b"3"]


@simulated
async def test_a_topic_that_was_created_again_goes_on_with_what_it_has() -> None:
    network = ScriptedNetwork()
    network.create("t", 3)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        for partition in (0, 1, 2):
            await (await producer.send("t", b"before", partition=partition))
        again = network.create("t", 2)
        network.brokers[1].script("Produce", refuse(ErrorCode.UNKNOWN_TOPIC_ID), refuse(ErrorCode.UNKNOWN_TOPIC_ID))
        sent = [await producer.send("t", value, partition=1) for value in numbers(20)]
        await asyncio.gather(*sent)
        with pytest.raises(UnknownTopicError):
            await producer.send("t", b"", partition=2)
    assert again[1].values() == numbers(20)


@simulated
async def test_the_producer_id_is_asked_for_until_there_is_one() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")

    async def not_yet(broker: Broker, request: Any) -> Any:
        return InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    network.brokers[1].script("InitProducerId", not_yet, not_yet, drop_unread)
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"1"))
    assert log.headers()[0].producer_id > 0
    network.brokers[1].script("InitProducerId", *[not_yet] * 100)
    with pytest.raises(BrokerError, match=r"get a producer id at broker1:9092 .*COORDINATOR_LOAD_IN_PROGRESS"):
        async with Producer(network.bootstrap, network=network, max_block_ms=5000):
            pass


@simulated
async def test_another_producer_id_is_used_when_the_epochs_of_one_are_used_up() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"1"))
        producer._topics["t"].queues[0].producer_epoch = MAX_EPOCH
        network.brokers[1].script("Produce", refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
        sent = [await producer.send("t", value) for value in numbers(10)]
        await asyncio.gather(*sent)
    assert log.values() == [b"1", *numbers(10)]
    before, *after = log.headers()
    assert {header.producer_id for header in after} == {before.producer_id + 1}
    assert {header.producer_epoch for header in after} == {0}


# Giving up.


@simulated
async def test_a_record_that_is_not_acknowledged_in_time_fails_and_says_why() -> None:
    network = ScriptedNetwork()
    network.create("t")
    async with Producer(
        network.bootstrap, network=network, request_timeout_ms=1000, delivery_timeout_ms=5000
    ) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].go_down()
        start = now()
        with pytest.raises(DeliveryTimeoutError, match="send records on t-0: not acknowledged within 5000 ms"):
            await (await producer.send("t", b"2"))
        assert now() - start == pytest.approx(5, abs=0.1)


@simulated
async def test_memory_of_a_given_up_batch_stays_taken_while_its_request_is_under_way() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(
        network.bootstrap,
        network=network,
        request_timeout_ms=1000,
        delivery_timeout_ms=1005,
        linger_ms=5,
        buffer_memory=1500,
        max_block_ms=10,
    ) as producer:
        first = await producer.send("t", bytes(1000))
        with pytest.raises(BufferFullError, match="buffer_memory of 1500 bytes was full for 10 ms"):
            await producer.send("t", bytes(1000))
        with pytest.raises(DeliveryTimeoutError, match="the log or not"):
            await first
        await asyncio.sleep(0.5)
        await (await producer.send("t", b"2"))
    assert log.values()[-1] == b"2"
    network.check_buffers()


@simulated
async def test_records_behind_one_that_was_given_up_are_written_once_under_a_new_epoch() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(
        network.bootstrap,
        network=network,
        batch_size=0,
        linger_ms=0,
        request_timeout_ms=500,
        delivery_timeout_ms=500,
        retry_backoff_max_ms=100,
    ) as producer:
        await (await producer.send("t", b"before"))
        network.brokers[1].script("Produce", *[refuse(ErrorCode.NOT_ENOUGH_REPLICAS)] * 8)
        given_up = await producer.send("t", b"given up")
        await asyncio.sleep(0.45)
        sent = [await producer.send("t", value) for value in numbers(10)]
        with pytest.raises(DeliveryTimeoutError, match=r"the last attempt: .*NOT_ENOUGH_REPLICAS"):
            await given_up
        assert [at.offset for at in await asyncio.gather(*sent)] == list(range(1, 11))
    assert log.values() == [b"before", *numbers(10)]
    assert log.headers()[-1].producer_epoch > 0


@simulated
async def test_close_waits_no_longer_than_it_is_told() -> None:
    network = ScriptedNetwork()
    network.create("t")
    producer = Producer(network.bootstrap, network=network)
    await producer.start()
    await (await producer.send("t", b"1"))
    network.brokers[1].go_down()
    sent = await producer.send("t", b"2")
    start = now()
    await producer.close(timeout_ms=2000)
    assert now() - start == pytest.approx(2)
    with pytest.raises(ClosedError, match="closed before they were acknowledged"):
        await sent
    with pytest.raises(ClosedError):
        await producer.send("t", b"3")


@simulated
async def test_a_cancelled_wait_for_a_record_harms_nobody() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        first = await producer.send("t", b"1")
        second = await producer.send("t", b"2")
        first.cancel()
        assert (await second).offset == 1
    assert log.values() == [b"1", b"2"]


# Back-pressure.


@simulated
async def test_send_waits_for_memory_in_order() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(network.bootstrap, network=network, buffer_memory=3000) as producer:
        senders = [asyncio.create_task(producer.send("t", value.ljust(1000))) for value in numbers(10)]
        await gate.reached.wait()
        await asyncio.sleep(1)
        assert sum(sender.done() for sender in senders) == 2
        gate.open()
        await asyncio.gather(*senders)
    assert log.values() == [value.ljust(1000) for value in numbers(10)]


async def slowly(broker: Broker, request: Any) -> Any:
    await asyncio.sleep(0.002)
    return await broker.serve(request)


@simulated
async def test_send_runs_a_few_batches_ahead_of_a_slow_leader_and_no_more() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", *[slowly] * 200)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0, max_in_flight=3) as producer:
        sent = []
        for value in numbers(200):
            sent.append(await producer.send("t", value))
            assert sum(not future.done() for future in sent) <= 2 * 3 + 1
    assert log.values() == numbers(200)


@simulated
async def test_send_fills_the_memory_all_the_same_when_the_leader_is_silent() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        start = now()
        sent = [await producer.send("t", value) for value in numbers(100)]
        assert now() - start < 100 * 0.0051
        assert not any(future.done() for future in sent)
        gate.open()
    assert log.values() == numbers(100)


@simulated
async def test_a_record_larger_than_the_memory_goes_alone() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, buffer_memory=100) as producer:
        for value in (b"1", bytes(5000), b"3"):
            await producer.send("t", value)
    assert log.values() == [b"1", bytes(5000), b"3"]


# Without answers, without idempotence.


@simulated
async def test_acks_0_waits_for_nobody_and_knows_no_offset() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, acks=0, batch_size=0) as producer:
        sent = [await producer.send("t", value) for value in numbers(50)]
        assert {at.offset for at in await asyncio.gather(*sent)} == {-1}
        await asyncio.sleep(1)
    assert log.values() == numbers(50)
    assert log.headers()[0].producer_id == -1


@simulated
async def test_acks_1_is_not_idempotent_unless_asked_and_then_it_is_refused() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, acks=1) as producer:
        await (await producer.send("t", b"1"))
    assert log.headers()[0].producer_id == -1
    assert network.brokers[1].received(ProduceRequest)[0].acks == 1
    with pytest.raises(ConfigurationError, match=r'acks is 1. idempotence needs acks="all"'):
        Producer(network.bootstrap, network=network, acks=1, enable_idempotence=True)


# What cannot be sent.


@simulated
async def test_what_is_not_bytes_is_a_type_error_and_leaves_no_trace() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        with pytest.raises(TypeError, match="bytes or None"):
            await producer.send("t", "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="bytes or None"):
            await producer.send("t", b"", key=7)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match=r"send a record on t-0: .* does not fit into 64 bits"):
            await producer.send("t", b"", timestamp=1 << 70)
        await producer.flush()
        await (await producer.send("t", b"fine"))
    assert log.values() == [b"fine"]


@simulated
async def test_what_a_codec_raises_is_told_to_those_who_wait() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, compression_type="gzip") as producer:
        msgspec.structs.force_setattr(producer._config, "compression_level", 99)  # zlib goes up to 9
        refused = await producer.send("t", b"x")
        with pytest.raises(ClientError, match=r"encode records: .*ompression level"):
            await refused
        msgspec.structs.force_setattr(producer._config, "compression_level", 9)
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


# Everything at once.


@pytest.mark.parametrize("seed", range(20))
@simulated
async def test_whatever_happens_every_record_is_written_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    network = ScriptedNetwork(brokers=3, piece_size=chance.choice([1, 7, 1000]))
    logs = network.create("t", 4)
    errors = [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.KAFKA_STORAGE_ERROR]

    async def trouble() -> None:
        for _ in range(chance.randrange(5, 40)):
            await asyncio.sleep(chance.expovariate(10))
            broker = network.brokers[chance.randrange(1, 4)]
            match chance.randrange(5):
                case 0:
                    broker.script("Produce", chance.choice([drop_unread, serve_and_drop]))
                case 1:
                    broker.script("Produce", refuse(chance.choice(errors)))
                case 2:
                    network.move(chance.choice(logs), to=chance.randrange(1, 4))
                case 3:
                    broker.go_down()
                    await asyncio.sleep(chance.expovariate(1))
                    broker.come_up()
                case 4:
                    broker.drop_connections()

    async with Producer(
        network.bootstrap,
        network=network,
        batch_size=chance.choice([0, 60, 300]),
        linger_ms=chance.choice([0, 5]),
        delivery_timeout_ms=10**9,
    ) as producer:
        troubling = asyncio.create_task(trouble())
        sent: dict[int, list[bytes]] = {partition: [] for partition in range(4)}
        futures = []
        for number in range(400):
            partition = chance.randrange(4)
            sent[partition].append(b"%d" % number)
            futures.append(await producer.send("t", b"%d" % number, partition=partition))
            if chance.random() < 0.1:
                await asyncio.sleep(chance.expovariate(20))
        metadata = await asyncio.gather(*futures)
        await troubling
    for log in logs:
        assert log.values() == sent[log.partition]
    for number, at in enumerate(metadata):
        assert at.offset < 0 or logs[at.partition].values()[at.offset] == b"%d" % number
    network.check_buffers()


@simulated
async def test_the_scripted_log_would_notice_a_gap() -> None:
    """The chaos above proves nothing if the log takes anything."""
    log = Log("t", 0, 1)
    builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=0)
    builder.append(0, None, b"")
    assert log.append(builder.build()) == (ErrorCode.NONE, 0)
    assert log.append(builder.build()) == (ErrorCode.NONE, 0)
    builder.base_sequence = 2
    assert log.append(builder.build())[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(log.headers()) == 1

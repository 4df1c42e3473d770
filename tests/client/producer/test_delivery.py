"""Delivery over a scripted network with failures: each record is in the log once and in order, or it fails."""

from __future__ import annotations

import asyncio
import random
import sys
from typing import Any

import pytest

from odradek.client import (
    AuthorizationError,
    BrokerError,
    Producer,
    RecordTooLargeError,
    UnknownTopicError,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    ProduceRequest,
    ProduceResponse,
)
from odradek.protocol.records.batch_builder import BatchBuilder
from tests.client.scripted_broker import Broker
from tests.client.scripted_log import Log
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, drop_unread, now, numbers, refuse, serve_and_drop
from tests.client.virtual_time import simulated
from tests.effort import cases

# Failures of requests.


@simulated
async def test_a_batch_whose_request_was_lost_is_sent_again() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", drop_unread)
    async with Producer(network.bootstrap, network=network) as producer:
        assert (await (await producer.send("t", b"1"))).offset == 0
    assert log.values() == [b"1"]


@simulated
async def test_a_batch_whose_response_was_lost_is_not_duplicated() -> None:
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
async def test_order_is_kept_when_one_of_several_in_flight_gets_a_retriable_error(code: ErrorCode) -> None:
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
async def test_order_is_kept_when_the_leader_is_not_ready_for_the_first_batches(how: Any) -> None:
    """A leader accepts any first sequence of a new producer: the second batch must not be written first."""
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
async def test_an_error_that_names_the_new_leader_causes_no_backoff() -> None:
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
async def test_a_broker_that_is_down_for_a_while_causes_a_delay_and_no_loss() -> None:
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


if sys.version_info >= (3, 12):

    @simulated
    async def test_a_broker_that_is_down_is_connected_to_again_by_eager_tasks() -> None:
        """A connection that is refused at once ends within `create_task`."""
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        network = ScriptedNetwork()
        [log] = network.create("t")
        async with Producer(network.bootstrap, network=network) as producer:
            await (await producer.send("t", b"1"))
            network.brokers[1].go_down()
            sent = await producer.send("t", b"2")
            await asyncio.sleep(20)
            network.brokers[1].come_up()
            assert (await sent).offset == 1
        assert log.values() == [b"1", b"2"]


@simulated
async def test_a_request_without_a_response_is_repeated_on_a_new_connection() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    network.brokers[1].script("Produce", Gate())
    async with Producer(network.bootstrap, network=network, request_timeout_ms=1000) as producer:
        sent = await producer.send("t", b"1")
        await sent
        assert 1 < now() < 2
    assert log.values() == [b"1"]


@simulated
async def test_a_batch_with_a_final_error_fails_and_later_ones_are_written() -> None:
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
    assert [header.producer_epoch for header in log.headers()] == [0, 1, 1, 1, 1, 1]  # one sequence was never written


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("2 records refused: record 0: no key", r"\(2 records refused: record 0: no key\)"),
        ("One or more records have been rejected", r"\(One or more records have been rejected; no key\)"),
        (None, r"\(no key\)"),
    ],
)
@simulated
async def test_the_error_contains_the_first_message_about_a_single_record(message: str | None, expected: str) -> None:
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
        with pytest.raises(BrokerError, match=rf"INVALID_RECORD {expected}"):
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
async def test_a_recreated_topic_gets_the_waiting_records() -> None:
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
async def test_the_leader_remembers_every_batch_that_may_be_sent_again() -> None:
    """It remembers five of a producer; a new leader gets no more than that beside what the old one has not answered."""
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")
    network.create("another", 2)
    answers = asyncio.Event()

    async def serve_and_drop_later(broker: Broker, request: ProduceRequest) -> Any:
        await broker.serve(request)
        await answers.wait()
        return await drop_unread(broker, request)

    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        network.brokers[1].script("Produce", serve_and_drop_later)
        slow = await producer.send("t", b"slow")
        await asyncio.sleep(1)
        network.move(log, to=2)
        await (await producer.send("another", b"of the new leader", partition=1))  # brings metadata
        sent = [await producer.send("t", value) for value in numbers(20)]
        await asyncio.sleep(1)
        assert log.values() == [b"first", b"slow", *numbers(4)]
        answers.set()
        assert (await slow).offset == 1
        await asyncio.gather(*sent)
    assert log.values() == [b"first", b"slow", *numbers(20)]


@simulated
async def test_a_record_whose_leader_leaves_the_metadata_is_sent_again() -> None:
    network = ScriptedNetwork(brokers=2)
    [log] = network.create("t")

    async def serve_and_leave(broker: Broker, request: ProduceRequest) -> None:
        await broker.serve(request)
        broker.is_up = False  # its connections stay open

    async with Producer(network.bootstrap, network=network, metadata_max_age_ms=500) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].script("Produce", serve_and_leave)
        sent = await producer.send("t", b"2")
        await asyncio.sleep(3)
        network.move(log, to=2)
        assert (await sent).offset == 1
        assert now() < 10
    assert log.values() == [b"1", b"2"]


# Random failures.


@pytest.mark.parametrize("seed", range(cases(20)))
@simulated
async def test_every_record_is_written_once_and_in_order_through_random_failures(seed: int) -> None:
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
async def test_the_scripted_log_detects_a_gap() -> None:
    """The random test proves nothing if the log accepts every batch."""
    log = Log("t", 0, 1)
    builder = BatchBuilder(producer_id=1, producer_epoch=0, base_sequence=0)
    builder.append(0, None, b"")
    assert log.append(builder.build()) == (ErrorCode.NONE, 0)
    assert log.append(builder.build()) == (ErrorCode.NONE, 0)
    builder.base_sequence = 2
    assert log.append(builder.build())[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(log.headers()) == 1

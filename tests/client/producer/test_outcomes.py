"""The error of a record over a scripted network: it is certainly not written, or PossiblyPersistedError."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    AuthorizationError,
    BrokerError,
    ClientError,
    ClosedError,
    DeliveryTimeoutError,
    PossiblyPersistedError,
    Producer,
    RecordTooLargeError,
)
from odradek.client.config import Acks
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import ProduceResponse
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import Gate, drop_unread, numbers, refuse, serve_and_drop
from tests.client.virtual_time import simulated


async def failure_of(sent: asyncio.Future[Any]) -> ClientError:
    with pytest.raises(ClientError) as caught:
        await sent
    return caught.value


async def outcome_after(*answers: Any, **settings: Any) -> tuple[ClientError, list[bytes | None]]:
    """The error of a record whose requests get these answers, and the values in the log."""
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, linger_ms=0, **settings) as producer:
        network.brokers[1].script("Produce", *answers)
        failure = await failure_of(await producer.send("t", b"1"))
    return failure, log.values()


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.POLICY_VIOLATION,
    ],
)
@simulated
async def test_a_refused_record_is_not_written_unless_an_earlier_attempt_had_no_response(code: ErrorCode) -> None:
    failure, values = await outcome_after(refuse(code))
    assert isinstance(failure, BrokerError)
    assert values == []
    for lost in (drop_unread, serve_and_drop):
        failure, values = await outcome_after(lost, refuse(code))
        assert isinstance(failure, PossiblyPersistedError)
        assert isinstance(failure.__cause__, BrokerError)
        assert failure.__cause__.code is code
        assert code.name in str(failure)
        assert values == ([b"1"] if lost is serve_and_drop else [])


@pytest.mark.parametrize("acks", [1, "all"])
@simulated
async def test_the_same_holds_without_idempotence(acks: Acks) -> None:
    refused = refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    failure, _ = await outcome_after(refused, acks=acks, enable_idempotence=False)
    assert isinstance(failure, AuthorizationError)
    failure, values = await outcome_after(serve_and_drop, refused, acks=acks, enable_idempotence=False)
    assert isinstance(failure, PossiblyPersistedError)
    assert values == [b"1"]


@simulated
async def test_an_error_that_may_come_after_the_append_leaves_it_unknown() -> None:
    async def append_and_fail(broker: Broker, request: Any) -> Any:
        answer = await broker.serve(request)
        assert isinstance(answer, ProduceResponse)
        answer.responses[0].partition_responses[0].error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return answer

    failure, values = await outcome_after(append_and_fail)
    assert isinstance(failure, PossiblyPersistedError)
    assert values == [b"1"]


@simulated
async def test_a_response_without_the_partition_leaves_it_unknown() -> None:
    async def append_and_omit(broker: Broker, request: Any) -> Any:
        answer = await broker.serve(request)
        assert isinstance(answer, ProduceResponse)
        answer.responses[0].partition_responses.clear()
        return answer

    failure, values = await outcome_after(append_and_omit)
    assert isinstance(failure, PossiblyPersistedError)
    assert values == [b"1"]


@simulated
async def test_records_that_were_refused_until_the_delivery_timeout_are_not_written() -> None:
    limits = {"request_timeout_ms": 500, "delivery_timeout_ms": 1000}
    not_enough = refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
    failure, values = await outcome_after(*[not_enough] * 100, **limits)
    assert isinstance(failure, DeliveryTimeoutError)
    assert str(failure).endswith(". They were not written")
    assert values == []
    failure, values = await outcome_after(serve_and_drop, *[not_enough] * 100, **limits)
    assert isinstance(failure, PossiblyPersistedError)
    assert isinstance(failure.__cause__, DeliveryTimeoutError)
    assert values == [b"1"]


@pytest.mark.parametrize("acks", [0, 1, "all"])
@simulated
async def test_records_for_a_leader_that_is_away_are_never_sent(acks: Acks) -> None:
    network = ScriptedNetwork()
    network.create("t")
    limits = {"request_timeout_ms": 500, "delivery_timeout_ms": 1000}
    async with Producer(network.bootstrap, network=network, acks=acks, **limits) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].go_down()
        await asyncio.sleep(1)
        failure = await failure_of(await producer.send("t", b"2"))
    assert isinstance(failure, DeliveryTimeoutError)
    assert str(failure).endswith(". They were never sent")


@simulated
async def test_a_producer_that_is_closed_reports_what_was_in_flight() -> None:
    network = ScriptedNetwork()
    network.create("t")
    producer = Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0)
    await producer.start()
    gate = Gate()
    network.brokers[1].script("Produce", gate)
    in_flight, waiting = [await producer.send("t", value) for value in numbers(2)]
    await gate.reached.wait()
    await producer.close(0)
    failure = await failure_of(in_flight)
    assert isinstance(failure, PossiblyPersistedError)
    assert isinstance(failure.__cause__, ClosedError)
    assert isinstance(await failure_of(waiting), ClosedError)


@simulated
async def test_a_split_after_a_lost_response_leaves_the_record_that_is_too_large_unknown() -> None:
    """The topic had another limit when the batch of both was written."""
    network = ScriptedNetwork()
    [log] = network.create("t")

    async def append_and_lower(broker: Broker, request: Any) -> Any:
        answer = await serve_and_drop(broker, request)
        log.max_message_bytes = 300
        return answer

    async with Producer(network.bootstrap, network=network) as producer:
        network.brokers[1].script("Produce", append_and_lower, refuse(ErrorCode.MESSAGE_TOO_LARGE))
        sent = [await producer.send("t", value) for value in (b"1", bytes(400))]
        failures = [await failure_of(each) for each in sent]
    assert [type(each) for each in failures] == [PossiblyPersistedError] * 2
    assert isinstance(failures[1].__cause__, RecordTooLargeError)
    assert log.values() == [b"1", bytes(400)]

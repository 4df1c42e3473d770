"""Sequences and producer ids over a scripted network: no record is duplicated or lost when a broker forgets them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from odradek.client import (
    AuthorizationError,
    BrokerError,
    PossiblyPersistedError,
    Producer,
)
from odradek.client.producer import sender
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.init_producer_id import InitProducerIdResponse
from odradek.protocol.messages.produce import (
    ProduceRequest,
)
from tests.client.scripted_broker import Broker
from tests.client.scripted_network import ScriptedNetwork
from tests.client.scripts import drop_unread, now, numbers, refuse, serve_and_drop
from tests.client.virtual_time import simulated


@simulated
async def test_the_request_for_a_producer_id_is_retried() -> None:
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
async def test_another_producer_id_is_used_after_the_last_epoch_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MAX_EPOCH", 0)
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].script("Produce", refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
        sent = [await producer.send("t", value) for value in numbers(10)]
        await asyncio.gather(*sent)
    assert log.values() == [b"1", *numbers(10)]
    before, *after = log.headers()
    assert {header.producer_id for header in after} == {before.producer_id + 1}
    assert {header.producer_epoch for header in after} == {0}


@simulated
async def test_a_refused_producer_id_is_requested_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "MAX_EPOCH", 0)
    network = ScriptedNetwork()
    [log] = network.create("t")

    async def forbid(broker: Broker, request: Any) -> Any:
        return InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    async with Producer(network.bootstrap, network=network, linger_ms=0, retry_backoff_max_ms=1000) as producer:
        await (await producer.send("t", b"1"))
        network.brokers[1].script("Produce", refuse(ErrorCode.INVALID_PRODUCER_EPOCH))
        network.brokers[1].script("InitProducerId", *[forbid] * 3)
        start = now()
        await producer.send_and_wait("t", b"2")
        assert now() - start == pytest.approx(3, abs=0.5)
    assert log.values() == [b"1", b"2"]


# A leader that has lost its state of the producer.


async def serve_unanswered(broker: Broker, request: Any) -> None:
    """Append the batch, without a response."""
    await broker.serve(request)


async def lose(broker: Broker, request: Any) -> None:
    """Lose the request, but keep the connection."""


@simulated
async def test_a_written_batch_that_the_leader_has_forgotten_fails_and_is_not_duplicated() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")

    async def crash(broker: Broker, request: Any) -> Any:
        answer = await serve_and_drop(broker, request)
        log.forget_all_but_the_last_batch()
        return answer

    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        network.brokers[1].script("Produce", serve_unanswered, serve_unanswered, crash)
        sent = [await producer.send("t", value) for value in numbers(20)]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
    forgotten, known = outcomes[:2], outcomes[2:]
    assert log.values() == [b"first", *numbers(20)]
    assert [outcome.offset for outcome in known if not isinstance(outcome, BaseException)] == list(range(3, 21))
    for error in forgotten:
        assert isinstance(error, PossiblyPersistedError)
        assert isinstance(error.__cause__, BrokerError)
        assert error.__cause__.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert "send records on t-0 at broker1:9092" in str(error)
        assert "may be in the log or not" in str(error)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH])
@simulated
async def test_a_batch_of_a_forgotten_producer_is_not_renumbered(code: ErrorCode) -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"0"))
        network.brokers[1].script("Produce", serve_and_drop, refuse(code))
        with pytest.raises(PossiblyPersistedError, match=code.name):
            await (await producer.send("t", b"1"))
        assert (await (await producer.send("t", b"2"))).offset == 2
    assert log.values() == [b"0", b"1", b"2"]


@simulated
async def test_batches_that_were_never_sent_are_written_after_lost_ones() -> None:
    """The log was truncated: the leader refuses the sequences, so it is unknown whether the batches are in the log."""
    network = ScriptedNetwork()
    [log] = network.create("t")
    out_of_order = refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"first"))
        network.brokers[1].script("Produce", *[lose] * 4, drop_unread, *[out_of_order] * 5)
        lost = [await producer.send("t", value) for value in numbers(5)]
        outcomes = await asyncio.gather(*lost, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [PossiblyPersistedError] * 5
        network.brokers[1].script("Produce", out_of_order)
        sent = [await producer.send("t", value) for value in numbers(9)]
        await asyncio.gather(*sent)
    assert log.values() == [b"first", *numbers(9)]
    assert [header.producer_epoch for header in log.headers()] == [0] + [1] * 9


@simulated
async def test_a_batch_that_may_be_written_is_not_renumbered_with_earlier_ones() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"0"))
        refused = refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        network.brokers[1].script("Produce", refused, Broker.serve, drop_unread)
        sent = [await producer.send("t", value) for value in (b"1", b"2", b"3")]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        await (await producer.send("t", b"4"))
    assert isinstance(outcomes[0], AuthorizationError)
    assert isinstance(outcomes[2], PossiblyPersistedError)
    assert log.values() == [b"0", b"2", b"4"]


@simulated
async def test_a_batch_is_not_written_after_its_successor() -> None:
    """The leader has forgotten the producer, so it accepts the second batch after a retriable error for the first."""
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network, batch_size=0, linger_ms=0) as producer:
        await (await producer.send("t", b"0"))
        log.forget_producers()
        network.brokers[1].script("Produce", refuse(ErrorCode.NOT_ENOUGH_REPLICAS))
        sent = [await producer.send("t", value) for value in (b"1", b"2", b"3")]
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
    assert isinstance(outcomes[0], PossiblyPersistedError)
    assert log.values() == [b"0", b"2", b"3"]


@simulated
async def test_a_duplicate_without_a_known_offset_is_completed() -> None:
    network = ScriptedNetwork()
    [log] = network.create("t")
    async with Producer(network.bootstrap, network=network) as producer:
        await (await producer.send("t", b"0"))
        network.brokers[1].script("Produce", serve_and_drop, refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
        assert (await (await producer.send("t", b"1"))).offset == -1
        assert (await (await producer.send("t", b"2"))).offset == 2
    assert log.values() == [b"0", b"1", b"2"]
    assert len(network.brokers[1].received(ProduceRequest)) == 4
    network.check_buffers()

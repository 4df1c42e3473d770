from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from odradek.broker.interbroker.row_batches import LARGEST_REQUEST
from odradek.broker.interbroker.transactions import InterBrokerTransactions
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.api import by_name
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.client.scripted_broker import DROP
from tests.client.virtual_time import simulated
from tests.interbroker.place import Place

Answer = Callable[..., Awaitable[Any]]


class Transactions:
    """Broker 1, which sends requests to broker 2 of three."""

    def __init__(self) -> None:
        self.place = Place()
        self.failures: list[BaseException] = []
        self.tasks = BackgroundTasks(lambda _, error: self.failures.append(error))
        self.sender = InterBrokerTransactions(self.place.connections, self.tasks)
        for broker in self.place.network.brokers.values():
            for name in ("WriteTxnMarkers", "AddPartitionsToTxn"):
                api = by_name(name)
                broker.versions[api.key] = (api.min_version, api.max_version)

    def script(self, name: str, *answers: Answer) -> None:
        self.place.network.brokers[2].script(name, *answers)

    def received(self, kind: type[Any]) -> list[Any]:
        return self.place.network.brokers[2].received(kind)

    async def write(self, *producer_ids: int) -> WriteTxnMarkersResponse:
        return await self.sender.write_markers(2, WriteTxnMarkersRequest([marker(each, "t") for each in producer_ids]))

    async def add(self, *ids: str) -> AddPartitionsToTxnResponse:
        rows = [AddPartitionsToTxnTransaction(each, 7, 0, True, [AddPartitionsToTxnTopic("t", [0])]) for each in ids]
        return await self.sender.add_partitions(2, AddPartitionsToTxnRequest(rows))

    async def close(self) -> None:
        await self.tasks.stop()
        await self.place.connections.close()
        assert self.failures == []


def marker(producer_id: int, *topics: str) -> WritableTxnMarker:
    return WritableTxnMarker(producer_id, 1, True, [WritableTxnMarkerTopic(name, [0, 1]) for name in topics], 5, 2)


async def accept(_broker: object, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    """Each partition's result is its producer's id, so that mixed-up rows are seen."""
    return WriteTxnMarkersResponse(
        [
            WritableTxnMarkerResult(
                row.producer_id,
                [
                    WritableTxnMarkerTopicResult(
                        topic.name,
                        [WritableTxnMarkerPartitionResult(each, row.producer_id) for each in topic.partition_indexes],
                    )
                    for topic in row.topics
                ],
            )
            for row in reversed(request.markers)
        ]
    )


async def verify(_broker: object, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                row.transactional_id,
                [AddPartitionsToTxnTopicResult("t", [AddPartitionsToTxnPartitionResult(0, len(row.transactional_id))])],
            )
            for row in reversed(request.transactions)
        ]
    )


def codes(response: WriteTxnMarkersResponse) -> list[tuple[int, list[int]]]:
    return [
        (row.producer_id, [each.error_code for topic in row.topics for each in topic.partitions])
        for row in response.markers
    ]


@simulated
async def test_rows_that_arrive_during_a_request_share_the_next_one() -> None:
    here = Transactions()
    may_answer = asyncio.Event()

    async def wait(broker: object, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        await may_answer.wait()
        return await accept(broker, request)

    here.script("WriteTxnMarkers", wait, accept)
    first = asyncio.ensure_future(here.write(1, 2))
    await asyncio.sleep(1)
    later = [asyncio.ensure_future(here.write(*ids)) for ids in ((3,), (4, 5))]
    await asyncio.sleep(1)
    assert len(here.received(WriteTxnMarkersRequest)) == 1  # one at a time

    may_answer.set()

    assert codes(await first) == [(1, [1, 1]), (2, [2, 2])]
    assert [codes(await each) for each in later] == [[(3, [3, 3])], [(4, [4, 4]), (5, [5, 5])]]
    requests = here.received(WriteTxnMarkersRequest)
    assert [[row.producer_id for row in request.markers] for request in requests] == [[1, 2], [3, 4, 5]]
    assert requests[0].markers[0] == marker(1, "t")
    await here.close()


@simulated
async def test_two_rows_of_one_producer_are_sent_one_after_the_other() -> None:
    here = Transactions()
    here.script("WriteTxnMarkers", accept, accept)

    assert codes(await here.write(1, 1, 2)) == [(1, [1, 1]), (1, [1, 1]), (2, [2, 2])]

    requests = here.received(WriteTxnMarkersRequest)
    assert [[row.producer_id for row in request.markers] for request in requests] == [[1, 2], [1]]
    await here.close()


@simulated
async def test_a_large_marker_is_sent_in_several_requests() -> None:
    here = Transactions()
    names = [f"{number:0200}" for number in range(4 * LARGEST_REQUEST // 200)]
    here.script("WriteTxnMarkers", *[accept] * 9)

    response = await here.sender.write_markers(2, WriteTxnMarkersRequest([marker(1, *names), marker(2, "t")]))

    assert [topic.name for topic in response.markers[0].topics] == names
    assert codes(response)[1] == (2, [2, 2])
    assert len(here.received(WriteTxnMarkersRequest)) == 5
    await here.close()


@simulated
async def test_transactions_are_checked_together() -> None:
    here = Transactions()
    here.script("AddPartitionsToTxn", verify)

    responses = await asyncio.gather(here.add("a"), here.add("bb", "ccc"))

    rows = [row for response in responses for row in response.results_by_transaction]
    assert [
        (row.transactional_id, row.topic_results[0].results_by_partition[0].partition_error_code) for row in rows
    ] == [
        ("a", 1),
        ("bb", 2),
        ("ccc", 3),
    ]
    [request] = here.received(AddPartitionsToTxnRequest)
    assert all(row.verify_only for row in request.transactions)
    await here.close()


@simulated
async def test_a_refused_request_raises_its_error() -> None:
    here = Transactions()

    async def refuse(*_: object) -> AddPartitionsToTxnResponse:
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    here.script("AddPartitionsToTxn", refuse)

    with pytest.raises(KafkaError) as raised:
        await here.add("a")
    assert raised.value.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    await here.close()


async def _drop(*_: object) -> object:
    return DROP


async def _never(*_: object) -> object:
    return await asyncio.Event().wait()


async def _empty(*_: object) -> object:
    return WriteTxnMarkersResponse()


@pytest.mark.parametrize("answer", [_drop, _never, _empty])
@simulated
async def test_without_an_answer_all_rows_fail_and_the_next_request_connects_again(answer: Answer) -> None:
    here = Transactions()
    here.script("WriteTxnMarkers", answer, accept)

    results = await asyncio.gather(here.write(1), here.write(2), return_exceptions=True)

    assert [isinstance(each, KafkaError) and each.code for each in results] == [ErrorCode.NETWORK_EXCEPTION] * 2
    assert codes(await here.write(3)) == [(3, [3, 3])]
    await here.close()


@simulated
async def test_a_broker_that_cannot_be_reached_or_is_too_old_is_a_network_exception() -> None:
    here = Transactions()
    here.place.network.brokers[2].limit("AddPartitionsToTxn", 3)
    for attempt in (here.add("a"), here.sender.write_markers(9, WriteTxnMarkersRequest([marker(1, "t")]))):
        with pytest.raises(KafkaError) as raised:
            await attempt
        assert raised.value.code == ErrorCode.NETWORK_EXCEPTION
    here.place.network.brokers[2].go_down()
    with pytest.raises(KafkaError) as raised:
        await here.write(1)
    assert raised.value.code == ErrorCode.NETWORK_EXCEPTION
    await here.close()


@simulated
async def test_rows_of_a_cancelled_caller_are_not_sent() -> None:
    here = Transactions()
    may_answer = asyncio.Event()

    async def wait(broker: object, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        await may_answer.wait()
        return await accept(broker, request)

    here.script("WriteTxnMarkers", wait, accept)
    first = asyncio.ensure_future(here.write(1))
    await asyncio.sleep(1)
    cancelled, third = asyncio.ensure_future(here.write(2)), asyncio.ensure_future(here.write(3))
    await asyncio.sleep(1)
    cancelled.cancel()
    await asyncio.wait([cancelled])
    may_answer.set()

    await asyncio.gather(first, third)

    requests = here.received(WriteTxnMarkersRequest)
    assert [[row.producer_id for row in request.markers] for request in requests] == [[1], [3]]
    await here.close()


@pytest.mark.parametrize("pause", [0, 1])
@simulated
async def test_a_stop_fails_the_rows_that_wait(pause: float) -> None:
    here = Transactions()
    here.script("WriteTxnMarkers", _never)
    waiting = [asyncio.ensure_future(here.write(1)), asyncio.ensure_future(here.write(2))]
    await asyncio.sleep(pause)

    await here.close()

    for each in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(each, KafkaError)
        assert each.code == ErrorCode.NETWORK_EXCEPTION

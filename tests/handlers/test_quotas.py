"""Quotas of clients, enforced by a broker whose clock the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from odradek.broker.broker import Broker
from odradek.broker.testing.movable_clock import MovableClock
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.protocol.messages.fetch import FetchPartition, FetchTopic
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.quotas import set_quota
from tests.handlers.requests import batch, create, fetch_request, produce_request, values_in
from tests.wire import Wire

APP: list[tuple[str, str | None]] = [("client-id", "app")]


class Timed(NamedTuple):
    """A broker, its clock with its time at the start, a client without quotas, and one with the client id `app`."""

    broker: Broker
    clock: MovableClock
    admin: Wire
    app: Wire
    begin: float

    def is_throttled(self, response: Any, milliseconds: int) -> bool:
        """Return whether the throttle time is this, less at most the time that has passed: the clock goes on."""
        passed = (self.clock.monotonic() - self.begin) * 1000
        throttled: int = response.throttle_time_ms
        return milliseconds - passed - 1 <= throttled <= milliseconds * 1.02


@pytest.fixture
async def timed() -> AsyncIterator[Timed]:
    clock = MovableClock()
    async with (
        Broker({"offsets.topic.num.partitions": "1"}, clock=clock) as broker,
        Wire("127.0.0.1", broker.port) as admin,
        Wire("127.0.0.1", broker.port, "app") as app,
    ):
        yield Timed(broker, clock, admin, app, clock.monotonic())


async def answer_after(timed: Timed, request: Any, version: int, seconds: float) -> Any:
    """Send a request of `app`; it is answered when the clock was moved by `seconds`, and not after a quarter of it."""
    asked = asyncio.ensure_future(timed.app.ask(request, version))
    await timed.clock.advance(seconds=seconds / 4)  # the clock goes on meanwhile, on a busy machine far
    await timed.admin.ask(MetadataRequest([]), 9)
    assert not asked.done()
    await timed.clock.advance(seconds=seconds * 3 / 4 + 0.1)
    return await asked


async def test_a_producer_is_answered_at_once_and_then_waits(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    await set_quota(timed.admin, APP, ("producer_byte_rate", 10_000.0))
    request = produce_request("t", batch(b"x" * 200_000))

    response = await timed.app.ask(request, 9)

    assert response.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert timed.is_throttled(response, 10_000)
    await answer_after(timed, MetadataRequest([]), 9, response.throttle_time_ms / 1000)
    free = await timed.admin.ask(request, 9)
    assert free.throttle_time_ms == 0


async def test_a_producer_without_acknowledgements_waits_too(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    await set_quota(timed.admin, APP, ("producer_byte_rate", 10_000.0))
    await timed.app.send(produce_request("t", batch(b"x" * 200_000), acks=0), 9)

    await answer_after(timed, MetadataRequest([]), 9, 10)


async def test_a_consumer_over_its_quota_gets_an_empty_answer_at_once_and_its_session_goes_on(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    for _ in range(3):
        await timed.admin.ask(produce_request("t", batch(b"x" * 60_000)), 9)
    await set_quota(timed.admin, APP, ("consumer_byte_rate", 10_000.0))

    def wanted(offset: int, session_id: int = 0, epoch: int = 0) -> Any:
        partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=60_000)
        topics = [FetchTopic("t", partitions=[partition])]
        return fetch_request("t", max_wait_ms=60_000, topics=topics, session_id=session_id, session_epoch=epoch)

    first = await timed.app.ask(wanted(0), 12)
    assert first.session_id != 0
    assert [len(values_in(row)) for topic in first.responses for row in topic.partitions] == [1]

    throttled = await timed.app.ask(wanted(1, first.session_id, 1), 12)
    assert (throttled.responses, throttled.session_id) == ([], first.session_id)
    assert timed.is_throttled(throttled, 2000)

    again, epoch = throttled, 2
    while again.throttle_time_ms:  # at the start the measured time is that of all windows, however little has passed
        await timed.clock.advance(milliseconds=again.throttle_time_ms)
        again = await timed.app.ask(wanted(1, first.session_id, epoch), 12)
        epoch += 1
    assert epoch <= 8
    assert [len(values_in(row)) for topic in again.responses for row in topic.partitions] == [1]


async def test_a_fetch_returns_no_more_than_the_quota_allows_at_once(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    for _ in range(5):
        await timed.admin.ask(produce_request("t", batch(b"x" * 30_000)), 9)
    await set_quota(timed.admin, APP, ("consumer_byte_rate", 10_000.0))

    response = await timed.app.ask(fetch_request("t"), 12)

    assert response.throttle_time_ms == 0
    assert 60_000 < sum(len(row.records) for topic in response.responses for row in topic.partitions) <= 100_000


async def test_a_removed_quota_holds_no_more(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    await set_quota(timed.admin, APP, ("producer_byte_rate", 1000.0))
    assert timed.broker.services.throttling.is_active
    await set_quota(timed.admin, APP, ("producer_byte_rate", None))

    response = await timed.app.ask(produce_request("t", batch(b"x" * 200_000)), 9)

    assert response.throttle_time_ms == 0
    assert not timed.broker.services.throttling.is_active


async def test_the_time_of_requests_is_limited(timed: Timed) -> None:
    await create(timed.admin, "t", 500)
    await set_quota(timed.admin, APP, ("request_percentage", 0.0001))

    first = await timed.app.ask(MetadataRequest(None), 9)
    assert 0 < first.throttle_time_ms <= 1000
    second = await answer_after(timed, MetadataRequest(None), 9, first.throttle_time_ms / 1000)
    assert 0 < second.throttle_time_ms <= 1000


def topics(*names: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest([CreatableTopic(name, partitions, 1) for name in names], 30_000)


def codes(rows: list[Any]) -> list[ErrorCode]:
    return [ErrorCode.of(row.error_code) for row in rows]


REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def test_topics_over_the_quota_are_refused_from_version_6_on(timed: Timed) -> None:
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))  # a burst of 11

    response = await timed.app.ask(topics("a", "b", "c", partitions=8), 7)

    assert codes(response.topics) == [ErrorCode.NONE, ErrorCode.NONE, REFUSED]
    assert response.topics[2].error_message is None
    assert timed.is_throttled(response, 5000)
    again = await answer_after(timed, topics("c", partitions=1), 7, 5)
    assert (codes(again.topics), again.throttle_time_ms) == ([ErrorCode.NONE], 0)


async def test_topics_over_the_quota_are_created_before_version_6_and_the_client_is_throttled(timed: Timed) -> None:
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))

    response = await timed.app.ask(topics("a", "b", "c", partitions=8), 5)

    assert codes(response.topics) == [ErrorCode.NONE] * 3
    assert timed.is_throttled(response, 13_000)


async def test_a_topic_that_is_refused_for_another_reason_is_not_charged(timed: Timed) -> None:
    await create(timed.admin, "a")
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))
    for _ in range(3):
        response = await timed.app.ask(topics("a", "not/valid", partitions=30), 7)
        assert codes(response.topics) == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_TOPIC_EXCEPTION]

    assert codes((await timed.app.ask(topics("b", partitions=1), 7)).topics) == [ErrorCode.NONE]


@pytest.mark.parametrize(("version", "code"), [(3, REFUSED), (2, ErrorCode.NONE)])
async def test_new_partitions_are_mutations(timed: Timed, version: int, code: ErrorCode) -> None:
    await create(timed.admin, "a")
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))

    def grown(count: int) -> CreatePartitionsRequest:
        return CreatePartitionsRequest([CreatePartitionsTopic("a", count, None)], 30_000)

    first = await timed.app.ask(grown(15), version)
    assert codes(first.results) == [ErrorCode.NONE]
    seconds = first.throttle_time_ms / 1000
    second = await (answer_after(timed, grown(16), version, seconds) if seconds else timed.app.ask(grown(16), version))
    assert codes(second.results) == [code]
    assert second.throttle_time_ms > 0


@pytest.mark.parametrize(("version", "code"), [(5, REFUSED), (4, ErrorCode.NONE)])
async def test_deleted_partitions_are_mutations(timed: Timed, version: int, code: ErrorCode) -> None:
    await create(timed.admin, "a", 15)
    await create(timed.admin, "b")
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))

    response = await timed.app.ask(DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=30_000), version)

    assert codes(response.responses) == [ErrorCode.NONE, code]
    assert timed.is_throttled(response, 4000 if code else 5000)


async def test_deleting_by_id_is_charged_too(timed: Timed) -> None:
    topic_id = await create(timed.admin, "a", 15)
    other_id = await create(timed.admin, "b")
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))

    request = DeleteTopicsRequest([DeleteTopicState(None, each) for each in (topic_id, other_id)], timeout_ms=30_000)
    response = await timed.app.ask(request, 6)

    assert codes(response.responses) == [ErrorCode.NONE, REFUSED]


async def test_topics_that_metadata_creates_are_mutations(timed: Timed) -> None:
    await set_quota(timed.admin, APP, ("controller_mutation_rate", 1.0))
    names = [MetadataRequestTopic(name=f"t{number}") for number in range(15)]

    response = await timed.app.ask(MetadataRequest(names, allow_auto_topic_creation=True), 9)

    assert codes(response.topics) == [ErrorCode.NONE] * 15
    assert timed.is_throttled(response, 4000)


async def test_users_share_a_quota_over_their_connections_and_client_ids(timed: Timed) -> None:
    await create(timed.admin, "t", retention_ms="-1")
    await set_quota(timed.admin, [("user", "ANONYMOUS")], ("producer_byte_rate", 10_000.0))
    request = produce_request("t", batch(b"x" * 80_000))

    assert (await timed.admin.ask(request, 9)).throttle_time_ms == 0
    assert timed.is_throttled(await timed.app.ask(request, 9), 6000)

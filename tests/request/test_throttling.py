"""What requests are charged with, by a manual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest

from odradek.broker.metadata.image import ImageChange, MetadataImage
from odradek.broker.quotas.client_quotas import ClientQuotas
from odradek.broker.quotas.connection_rates import AddressRates
from odradek.broker.quotas.entities import entity_of
from odradek.broker.quotas.samples import Windows
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.throttling import Throttling
from odradek.broker.security.principal import Principal
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState
from odradek.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse

PRODUCE, FETCH, LIST_OFFSETS, CREATE_TOPICS, MARKERS = 0, 1, 2, 19, 27
ALICE = Principal("User", "alice")
WINDOWS = Windows(11, 1.0)


class Throttled:
    """Throttling with these limits of user alice, and a clock to move."""

    def __init__(self, **limits: float) -> None:
        self.clock = ManualClock()
        self.throttling = Throttling(
            ClientQuotas(WINDOWS, WINDOWS), AddressRates(WINDOWS), self.clock.monotonic, lambda: "INTERNAL"
        )
        self.image = MetadataImage()
        self.set(limits)

    def set(self, limits: dict[str, float]) -> None:
        before, stored = self.image, {entity_of([("user", "alice")]): (limits, 1)} if limits else {}
        self.image = MetadataImage(client_quotas=stored)
        self.throttling.image_changed(ImageChange(before, self.image, ()))

    def context(self, key: int, *, version: int = 4, size: int = 100, listener: str = "PLAINTEXT") -> RequestContext:
        connection = ConnectionContext(listener, ("h", 1), ("h", 2), principal=ALICE)
        return RequestContext(key, version, 1, "app", self.clock.monotonic(), connection, size)


def test_a_change_applies_the_quotas_that_differ_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    throttling, applied = Throttled().throttling, []
    monkeypatch.setattr(throttling.quotas, "set", applied.append)
    users = {name: entity_of([("user", name)]) for name in ("alice", "bob", "carol")}
    before = {entity: ({"producer_byte_rate": 1.0}, 1) for entity in users.values()}
    after = {**before, users["bob"]: ({"producer_byte_rate": 2.0}, 2)}
    del after[users["carol"]]
    images = MetadataImage(client_quotas=before), MetadataImage(client_quotas=after)

    throttling.image_changed(ImageChange(*images, ()))

    assert applied == [{users["bob"]: {"producer_byte_rate": 2.0}, users["carol"]: {}}]


def test_a_removed_quota_of_an_address_holds_no_more() -> None:
    throttling = Throttled().throttling
    stored = {entity_of([("ip", "192.0.2.7")]): ({"connection_creation_rate": 1.0}, 1)}
    images = MetadataImage(), MetadataImage(client_quotas=stored)

    throttling.image_changed(ImageChange(*images, ()))
    assert throttling.addresses
    throttling.image_changed(ImageChange(images[1], images[0], ()))
    assert not throttling.addresses


def test_it_is_active_while_a_client_has_a_quota() -> None:
    throttled = Throttled()
    heard: list[bool] = []
    throttled.throttling.on_active.append(lambda: heard.append(throttled.throttling.is_active))

    throttled.set({"producer_byte_rate": 1.0})
    throttled.set({"producer_byte_rate": 2.0})
    throttled.set({})

    assert heard == [True, False]


def test_a_produce_over_the_quota_is_throttled_by_its_bytes() -> None:
    throttled = Throttled(producer_byte_rate=100.0)
    context, response = throttled.context(PRODUCE, size=2000), ProduceResponse()

    throttled.throttling.charge(context, ProduceRequest(), response, 0.001)

    assert response.throttle_time_ms == 10_000
    assert context.connection.throttle_ms == 10_000


def test_a_produce_without_answer_mutes_its_connection() -> None:
    throttled = Throttled(producer_byte_rate=100.0)
    context = throttled.context(PRODUCE, size=2000)

    throttled.throttling.charge(context, ProduceRequest(acks=0), None, 0.001)

    assert context.connection.throttle_ms == 10_000


def test_other_requests_are_not_charged_with_bytes() -> None:
    throttled = Throttled(producer_byte_rate=1.0, consumer_byte_rate=1.0)
    context, response = throttled.context(LIST_OFFSETS, size=1_000_000), ListOffsetsResponse()

    throttled.throttling.charge(context, ListOffsetsRequest(), response, 0.001)

    assert response.throttle_time_ms == context.connection.throttle_ms == 0


def test_the_time_of_the_loop_is_limited_in_percent_and_throttles_for_one_window_at_most() -> None:
    throttled = Throttled(request_percentage=10.0)

    def ask(seconds: float) -> int:
        response = ListOffsetsResponse()
        throttled.throttling.charge(throttled.context(LIST_OFFSETS), ListOffsetsRequest(), response, seconds)
        return response.throttle_time_ms

    assert ask(1.0) == 0  # 10 % of 10 s
    assert ask(0.05) == 500
    assert ask(10.0) == 1000


def test_time_after_the_answer_counts_for_the_next_request() -> None:
    throttled = Throttled(request_percentage=10.0)
    context = throttled.context(LIST_OFFSETS)
    throttled.throttling.charge_time(context, ListOffsetsRequest(), 1.05)
    assert context.connection.throttle_ms == 0

    throttled.throttling.charge(context, ListOffsetsRequest(), ListOffsetsResponse(), 0.0)

    assert context.connection.throttle_ms == 500


def test_the_longest_of_several_throttle_times_counts() -> None:
    throttled = Throttled(request_percentage=10.0, producer_byte_rate=100.0)
    response = ProduceResponse()

    throttled.throttling.charge(throttled.context(PRODUCE, size=2000), ProduceRequest(), response, 1.05)

    assert response.throttle_time_ms == 10_000


def test_a_throttle_time_of_the_handler_mutes_the_connection() -> None:
    throttled = Throttled(producer_byte_rate=100.0)
    context, response = throttled.context(FETCH), FetchResponse(throttle_time_ms=77)

    throttled.throttling.charge(context, FetchRequest(), response, 0.001)

    assert context.connection.throttle_ms == 77


def test_a_fetch_over_the_quota_is_not_charged_and_gets_through_later() -> None:
    throttled = Throttled(consumer_byte_rate=100.0)
    context = throttled.context(FETCH)
    assert throttled.throttling.throttle_fetch(context, 1000) == 0

    assert throttled.throttling.throttle_fetch(context, 500) == 5000
    assert throttled.throttling.throttle_fetch(context, 500) == 5000

    throttled.clock.advance(15_000)
    assert throttled.throttling.throttle_fetch(context, 500) == 0


def test_a_batch_larger_than_all_windows_is_sent_and_waited_for_afterwards() -> None:
    throttled = Throttled(consumer_byte_rate=100.0)
    context = throttled.context(FETCH)
    assert throttled.throttling.fetch_window_bytes(context) == 1000

    assert throttled.throttling.throttle_fetch(context, 6000) == 0
    throttled.clock.advance(20_000)
    assert throttled.throttling.throttle_fetch(context, 6000) == 40_000
    throttled.clock.advance(40_000)
    assert throttled.throttling.throttle_fetch(context, 6000) == 0


def test_consumers_at_full_speed_reach_their_rate() -> None:
    throttled = Throttled(consumer_byte_rate=100_000.0)
    context = throttled.context(FETCH)
    fetched = begun_with = 0
    began = 0.0
    start = throttled.clock.monotonic()
    while throttled.clock.monotonic() - start < 300:
        size = min(70_000, throttled.throttling.fetch_window_bytes(context))
        wait = throttled.throttling.throttle_fetch(context, size)
        fetched += 0 if wait else size
        throttled.clock.advance(max(wait, 1))
        if throttled.clock.monotonic() - start < 40:
            began, begun_with = throttled.clock.monotonic(), fetched

    assert (fetched - begun_with) / (throttled.clock.monotonic() - began) == pytest.approx(100_000, rel=0.1)


def test_a_fetch_over_the_request_quota_has_no_records_either() -> None:
    throttled = Throttled(request_percentage=10.0)
    context = throttled.context(FETCH)
    throttled.throttling.charge(context, FetchRequest(), FetchResponse(), 1.05)
    assert context.connection.throttle_ms == 0

    assert throttled.throttling.throttle_fetch(context, 1) == 500


@pytest.mark.parametrize(
    ("key", "request_", "version"),
    [
        (FETCH, FetchRequest(replica_id=2), 12),
        (FETCH, FetchRequest(replica_state=ReplicaState(2)), 17),
        (MARKERS, None, 1),
        (24, None, 4),
    ],
)
def test_what_brokers_send_each_other_is_exempt_at_their_listener_only(key: int, request_: Any, version: int) -> None:
    throttled = Throttled(request_percentage=0.01)
    for listener, is_throttled in ("INTERNAL", False), ("PLAINTEXT", True):
        context = throttled.context(key, version=version, listener=listener)
        throttled.throttling.charge_time(context, request_, 1.0)
        throttled.throttling.charge(context, request_, None, 1.0)
        requests = throttled.throttling.quotas.find("request_percentage", "alice", "app", throttled.clock.monotonic())
        assert requests is not None
        assert (requests.rate(throttled.clock.monotonic()) > 0) is is_throttled


def test_a_strict_quota_refuses_mutations_while_the_bucket_is_overdrawn() -> None:
    throttled = Throttled(controller_mutation_rate=2.0)  # a burst of 22
    quota = throttled.throttling.mutations(throttled.context(CREATE_TOPICS, version=6), 6)

    quota.take(30)
    assert quota.throttle_ms() == 0
    with pytest.raises(KafkaError) as refused:
        quota.take(1)

    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert quota.throttle_ms() == 4000
    throttled.clock.advance(4000)
    quota.take(1)
    assert quota.throttle_ms() == 0


def test_an_earlier_version_is_throttled_in_place_of_refused() -> None:
    throttled = Throttled(controller_mutation_rate=2.0)
    quota = throttled.throttling.mutations(throttled.context(CREATE_TOPICS, version=5), 6)

    quota.take(30)
    quota.take(2)

    assert quota.throttle_ms() == 5000


def test_without_a_quota_mutations_are_free() -> None:
    for throttled in Throttled(), Throttled(producer_byte_rate=1.0):
        quota = throttled.throttling.mutations(throttled.context(CREATE_TOPICS, version=7), 6)
        quota.take(10_000)
        quota.take(10_000)
        assert quota.throttle_ms() == 0


class Waits:
    """An awaitable that takes half a second of the loop before and after each of two waits."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def __await__(self) -> Generator[Any, Any, str]:
        for _ in range(2):
            self.clock.advance(500)
            yield from asyncio.sleep(0).__await__()
        self.clock.advance(500)
        return "result"


async def test_the_time_of_a_request_that_waits_is_measured_without_its_waits() -> None:
    throttled = Throttled(request_percentage=10.0)
    context = throttled.context(LIST_OFFSETS)
    task = asyncio.ensure_future(throttled.throttling.measure(Waits(throttled.clock), context))
    asyncio.get_running_loop().call_soon(throttled.clock.advance, 60_000)

    assert await task == "result"
    assert context.loop_seconds == pytest.approx(1.5)


async def test_a_measured_request_can_be_cancelled_and_may_fail() -> None:
    throttled = Throttled(request_percentage=10.0)
    context = throttled.context(LIST_OFFSETS)
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("cancelled")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise KafkaError(ErrorCode.INVALID_REQUEST, "")

    task = asyncio.ensure_future(throttled.throttling.measure(wait(), context))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled"]
    with pytest.raises(KafkaError):
        await throttled.throttling.measure(fail(), context)

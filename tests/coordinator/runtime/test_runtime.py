"""A coordinator of counters beside a broker's own: leadership, loading, unloading, and real appends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.broker.broker import Broker
from odradek.broker.coordinator.runtime.coordinator_shard import CoordinatorShard
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.broker.metadata.image import ImageChange, MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.runtime.counters import REMINDER, TOPIC, Break, Counters
from tests.coordinator.runtime.place import (
    LARGE,
    PRODUCER,
    TOO_LARGE,
    AddOnAppend,
    MarkerOnAppend,
    Place,
    Start,
    marker,
)
from tests.handlers.busy_threads import busy_disk_threads, busy_writer_threads
from tests.handlers.cluster import OTHER, SELF, publish


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a broker on the same log directory, and counters in it."""

    @asynccontextmanager
    async def started() -> AsyncIterator[Place]:
        async with Broker({"log.dirs": str(tmp_path / "log")}) as broker:
            place = Place(broker)
            place.runtime.image_changed(ImageChange(MetadataImage(), broker.services.metadata.image, ()))
            await place.runtime.create_topic()
            yield place
            place.runtime.stop()
            await place.tasks.stop()

    return started


@pytest.fixture
async def place(start: Start) -> AsyncIterator[Place]:
    async with start() as place:
        yield place


async def test_there_is_no_coordinator_before_the_topic_exists(tmp_path: Path) -> None:
    async with Broker({"log.dirs": str(tmp_path)}) as broker:
        place = Place(broker)
        assert await place.error() == ErrorCode.NOT_COORDINATOR
        assert place.runtime.coordinator_of("a") == -1
        assert not place.runtime.has_topic

        await place.runtime.create_topic()

        assert await place.error() == ErrorCode.NONE
        assert place.runtime.coordinator_of("a") == SELF
        assert place.runtime.has_topic
        await place.tasks.stop()


async def test_a_small_event_is_answered_at_once(place: Place) -> None:
    reply = place.submit("a", 3)

    assert reply.count == 3
    assert place.counters.counts == {"a": 3}


async def test_state_survives_a_restart(start: Start) -> None:
    async with start() as place:
        await place.add("a", 3)
        await place.add("b", 1, LARGE)
        await place.add("a", 1)

    async with start() as place:
        assert place.counters.replayed == [("a", 3), ("b", 1), ("a", 4)]
        assert await place.add("a", 1) == 5


async def test_a_large_append_holds_up_its_own_key_and_is_replayed_first(place: Place) -> None:
    async with busy_writer_threads(place.broker):
        large, behind = place.submit("a", 1, LARGE), place.submit("a", 1)
        small = place.submit("b", 2)
        assert not small.done()
        assert place.counters.replayed == []

    assert [(await reply).count for reply in (large, behind, small)] == [1, 2, 2]
    assert place.counters.replayed == [("a", 1), ("b", 2), ("a", 2)]


async def test_a_small_append_that_follows_a_large_one_at_once_is_replayed_after_it(place: Place) -> None:
    follower = AddOnAppend(place)
    place.broker.services.produce_purgatory.park(cast("Any", follower), [place.partition], 60_000)

    assert (await place.submit("a", 1, LARGE)).count == 1

    assert (await follower.reply).count == 2
    assert place.counters.replayed == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("committed", [True, False])
async def test_markers_and_records_of_one_turn_are_replayed_in_the_order_of_the_log(
    start: Start, committed: bool
) -> None:
    expected = [("behind", 3)] if not committed else [("large", 1), ("small", 2), ("behind", 3)]
    async with start() as place:
        async with busy_writer_threads(place.broker):
            large = place.submit("large", 1, LARGE, producer=PRODUCER)
            small = place.submit("small", 2, producer=PRODUCER)
            shown = place.runtime.write_marker(0, marker(committed=committed))
            behind = place.submit("behind", 3)
            assert [each.done() for each in (large, small, shown, behind)] == [False] * 4

        assert [(await reply).count for reply in (large, small, behind)] == [1, 2, 3]
        await shown
        assert place.counters.replayed == expected

    async with start() as place:
        assert place.counters.replayed == expected  # as the log says


async def test_a_marker_that_follows_a_large_append_at_once_is_replayed_after_it(place: Place) -> None:
    follower = MarkerOnAppend(place)
    place.broker.services.produce_purgatory.park(cast("Any", follower), [place.partition], 60_000)

    assert (await place.submit("a", 1, LARGE, producer=PRODUCER)).count == 1
    await follower.shown

    assert place.counters.counts == {"a": 1}


async def test_a_marker_and_small_records_show_at_once(place: Place) -> None:
    place.submit("a", 1, producer=PRODUCER)
    assert place.counters.counts == {}

    assert place.runtime.write_marker(0, marker()) is None

    assert place.counters.counts == {"a": 1}


async def test_a_producer_that_was_fenced_writes_no_records_and_no_marker(place: Place) -> None:
    place.submit("a", 1, producer=PRODUCER)
    place.runtime.write_marker(0, marker(epoch=1, committed=False))

    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        place.submit("a", 1, producer=PRODUCER)
    with pytest.raises(KafkaError, match="INVALID_PRODUCER_EPOCH"):
        place.runtime.write_marker(0, marker())

    assert place.counters.counts == {}


async def test_a_marker_waits_for_the_replicas(place: Place) -> None:
    epoch = place.broker.services.metadata.broker_epoch
    place.submit("a", 1, producer=PRODUCER)
    publish(place.broker, TOPIC.name, isr={SELF: epoch, OTHER: 9})
    shown = place.runtime.write_marker(0, marker())
    assert shown is not None
    assert place.counters.counts == {}

    publish(place.broker, TOPIC.name, isr={SELF: epoch})

    await shown
    assert place.counters.counts == {"a": 1}


async def test_a_marker_of_a_partition_that_moves_or_loads_is_refused(place: Place) -> None:
    place.submit("a", 1, producer=PRODUCER)
    async with busy_writer_threads(place.broker):
        place.submit("b", 1, LARGE).cancel()
        shown = place.runtime.write_marker(0, marker())
        publish(place.broker, TOPIC.name, leader=OTHER)
        assert shown is not None
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await shown
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        place.runtime.write_marker(0, marker())
    async with busy_disk_threads(place.broker):
        publish(place.broker, TOPIC.name, leader=SELF)
        await place.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, instead_of={ErrorCode.NOT_COORDINATOR})
        with pytest.raises(KafkaError, match="COORDINATOR_LOAD_IN_PROGRESS"):
            place.runtime.write_marker(0, marker())
    await place.until(ErrorCode.NONE, instead_of={ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})

    place.runtime.write_marker(0, marker())

    assert place.counters.counts["a"] == 1


async def test_an_append_that_fails_changes_nothing(place: Place) -> None:
    await place.add("a", 1)

    assert await place.error("a", 1, TOO_LARGE) == ErrorCode.UNKNOWN_SERVER_ERROR

    assert place.counters.counts == {"a": 1}
    assert await place.add("a", 1) == 2


async def test_a_defect_is_raised_to_its_request(place: Place) -> None:
    with pytest.raises(ZeroDivisionError):
        place.runtime.submit("a", Break(PendingReply()))

    assert await place.add("a", 1) == 1


async def test_an_append_waits_for_the_replicas(place: Place) -> None:
    epoch = place.broker.services.metadata.broker_epoch
    publish(place.broker, TOPIC.name, isr={SELF: epoch, OTHER: 9})
    reply = place.submit("a", 1)
    assert not reply.done()
    assert place.counters.counts == {}

    publish(place.broker, TOPIC.name, isr={SELF: epoch})

    assert (await reply).count == 1
    assert place.counters.counts == {"a": 1}


async def test_a_timer_expires(place: Place) -> None:
    expired = asyncio.Event()
    place.counters.on_expired = expired.set
    await place.add("a", 1, timers={REMINDER: 1})

    await expired.wait()

    assert await place.add("a", 0) == 1001


async def test_a_partition_that_moves_is_unloaded_and_its_requests_are_answered(place: Place) -> None:
    await place.add("a", 1, timers={REMINDER: 3_600_000})
    counters = place.counters
    async with busy_writer_threads(place.broker):
        waiting = place.submit("a", 1, LARGE), place.submit("a", 1)

        publish(place.broker, TOPIC.name, leader=OTHER)

        for reply in waiting:
            with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
                await reply
    assert await place.error() == ErrorCode.NOT_COORDINATOR
    assert place.runtime.coordinator_of("a") == OTHER
    assert counters.counts == {"a": 1}


async def test_a_partition_that_comes_back_is_loaded_again(place: Place) -> None:
    await place.add("a", 1)
    publish(place.broker, TOPIC.name, leader=OTHER)
    async with busy_disk_threads(place.broker):
        publish(place.broker, TOPIC.name, leader=SELF)
        await place.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, instead_of={ErrorCode.NOT_COORDINATOR})
        assert place.runtime.is_loading
    await place.until(ErrorCode.NONE, instead_of={ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})

    assert not place.runtime.is_loading
    assert place.counters.replayed == [("a", 1)]
    assert await place.add("a", 1) == 2


async def test_a_partition_is_served_when_what_was_loaded_is_committed(place: Place) -> None:
    epoch = place.broker.services.metadata.broker_epoch
    publish(place.broker, TOPIC.name, isr={SELF: epoch, OTHER: 9})
    uncommitted = place.submit("a", 5)
    publish(place.broker, TOPIC.name, leader=OTHER)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await uncommitted

    publish(place.broker, TOPIC.name, leader=SELF)
    await place.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, instead_of={ErrorCode.NOT_COORDINATOR})
    await asyncio.sleep(0.05)  # longer than the load takes
    assert await place.error() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    publish(place.broker, TOPIC.name, isr={SELF: epoch})
    await place.until(ErrorCode.NONE, instead_of={ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})
    assert place.counters.counts == {"a": 5}


async def test_a_partition_that_moves_while_its_records_are_not_committed_is_not_served(place: Place) -> None:
    publish(place.broker, TOPIC.name, isr={SELF: place.broker.services.metadata.broker_epoch, OTHER: 9})
    uncommitted = place.submit("a", 5)
    publish(place.broker, TOPIC.name, leader=OTHER)
    with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
        await uncommitted
    publish(place.broker, TOPIC.name, leader=SELF)
    await place.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, instead_of={ErrorCode.NOT_COORDINATOR})

    publish(place.broker, TOPIC.name, leader=OTHER)
    await place.runtime.create_topic()  # returns when all loads have ended

    assert await place.error() == ErrorCode.NOT_COORDINATOR
    assert not place.runtime.is_loading


async def test_a_load_is_discarded_if_the_partition_moves_meanwhile(place: Place) -> None:
    publish(place.broker, TOPIC.name, leader=OTHER)
    async with busy_disk_threads(place.broker):
        publish(place.broker, TOPIC.name, leader=SELF)
        await place.until(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, instead_of={ErrorCode.NOT_COORDINATOR})
        publish(place.broker, TOPIC.name, leader=OTHER)
        assert await place.error() == ErrorCode.NOT_COORDINATOR
    await place.runtime.create_topic()  # returns when all loads have ended

    assert await place.error() == ErrorCode.NOT_COORDINATOR


async def test_a_load_that_fails_is_repeated_in_the_next_epoch(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    await place.add("a", 1)
    publish(place.broker, TOPIC.name, leader=OTHER)

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(Counters, "replay", fail)
        publish(place.broker, TOPIC.name, leader=SELF)
        await place.runtime.create_topic()
        assert "coordinator not loaded" in caplog.text
    assert await place.error() == ErrorCode.NOT_COORDINATOR

    publish(place.broker, TOPIC.name, leader=SELF)
    await place.runtime.create_topic()

    assert await place.add("a", 1) == 2


async def test_a_runtime_that_is_stopped_answers_what_waits(place: Place) -> None:
    async with busy_writer_threads(place.broker):
        reply = place.submit("a", 1, LARGE)

        place.runtime.stop()

        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await reply
    assert await place.error() == ErrorCode.NOT_COORDINATOR


async def test_an_observer_sees_loaded_partitions_and_those_loaded_later(tmp_path: Path) -> None:
    early: list[Counters] = []
    late: list[Counters] = []

    def observe_early(inner: CoordinatorShard, shard: Counters) -> CoordinatorShard:
        early.append(shard)
        return inner

    def observe_late(inner: CoordinatorShard, shard: Counters) -> CoordinatorShard:
        late.append(shard)
        return inner

    async with Broker({"log.dirs": str(tmp_path)}) as broker:
        place = Place(broker)
        place.runtime.add_observer(observe_early)
        await place.runtime.create_topic()
        shards = [partition.shard for partition in place.runtime.loaded_partitions()]
        assert shards
        assert early == shards

        place.runtime.add_observer(observe_late)
        assert late == shards
        place.runtime.remove_observer(observe_late)
        with pytest.raises(ValueError, match="not in list"):
            place.runtime.remove_observer(observe_late)
        place.runtime.stop()
        await place.tasks.stop()

"""Brokers that join, lose their session, drain and leave."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import msgspec
import pytest

from odradek.broker.clock import SystemClock
from odradek.broker.metadata import membership
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Cmp, Op, Session, StoreUnreachableError, TxnResult
from odradek.broker.metadata.values import decode_registration
from odradek.protocol.errors import KafkaError
from tests.metadata.conftest import Start, until


class _Failures(list[BaseException]):
    def __init__(self) -> None:
        super().__init__()
        self.reported = asyncio.Event()

    def append(self, error: BaseException) -> None:
        super().append(error)
        self.reported.set()


async def _end_session(store: InMemoryStore, metadata: Metadata) -> None:
    """End the lease of a live broker, as the store does after silence."""
    ((kv, *_), _) = await store.range(metadata.keys.broker_id(metadata.config.node_id))
    await store.revoke(kv.lease)


async def _incarnation(store: InMemoryStore, metadata: Metadata) -> str:
    ((kv, *_), _) = await store.range(metadata.keys.broker_id(metadata.config.node_id))
    return decode_registration(kv.value).incarnation


async def test_a_broker_that_restarts_ends_its_old_session(shared: InMemoryStore, start: Start) -> None:
    first = await start(shared, session_seconds=3600)
    await first.stop(clean=False)
    assert len((await shared.range(first.keys.broker_ids))[0]) == 1

    second = await start(shared)

    assert second.broker_epoch > first.broker_epoch
    assert second.image.controller_id == 1


@pytest.mark.parametrize("clone", [{"log_dir_id": "there"}, {"log_dir_id": "here", "boot_id": "boot 2"}])
async def test_a_node_id_of_a_live_broker_is_refused(
    shared: InMemoryStore, start: Start, clone: dict[str, str]
) -> None:
    """Another broker; or a copy of the directory on another machine, whose lock proves nothing."""
    first = await start(shared, 1, log_dir_id="here")

    with pytest.raises(RegistrationError, match=rf"node.id 1 is .*127.0.0.1:9092.*here.*{clone['log_dir_id']}"):
        await start(shared, 1, **clone)

    assert first.image.brokers[1].epoch == first.broker_epoch


async def test_two_brokers_with_copies_of_a_directory_do_not_end_each_other_for_ever(
    shared: InMemoryStore, start: Start
) -> None:
    """On one machine, without a common lock. The first one lives, so the lock did not prove its death."""
    failures = _Failures()
    first = await start(shared, log_dir_id="copied", failures=failures)

    second = await start(shared, log_dir_id="copied")

    await asyncio.wait_for(failures.reported.wait(), 30)
    [error] = failures
    assert isinstance(error, RegistrationError)
    assert "so one is a copy" in str(error)
    assert second.image.brokers[1].epoch == second.broker_epoch > first.broker_epoch


async def test_a_moved_directory_waits_for_the_end_of_the_old_session(shared: InMemoryStore, start: Start) -> None:
    first = await start(shared, log_dir_id="moved", boot_id="one machine")
    await first.stop(clean=False)
    [session] = shared.sessions
    session.abandon()

    second = await start(shared, log_dir_id="moved", boot_id="another machine")

    assert second.image.brokers[1].epoch == second.broker_epoch


async def test_a_live_broker_that_lost_its_session_registers_again(shared: InMemoryStore, start: Start) -> None:
    failures: list[BaseException] = []
    first, second = await start(shared, 1, failures=failures), await start(shared, 2)
    await until(second, lambda image: len(image.brokers) == 2)
    await create_topic(second, "t", assignments={0: [1, 2]})
    alone = await create_topic(second, "alone", assignments={0: [1]})
    old_epoch, incarnation = first.broker_epoch, await _incarnation(shared, first)
    epochs: list[int] = []
    first.on_broker_epoch.append(epochs.append)

    await _end_session(shared, first)

    image = await until(second, lambda image: 1 in image.brokers and image.brokers[1].epoch > old_epoch)
    assert epochs == [first.broker_epoch] == [image.brokers[1].epoch]
    assert await _incarnation(shared, first) == incarnation
    image = await until(second, lambda image: image.topics["alone"].partitions[0].leader == 1)
    assert image.topics["t"].partitions[0].leader == 2
    assert image.brokers[1].intact_since <= alone.partitions[0].isr[1], "the process lives: nothing is lost"
    assert image.controller_id == 2
    assert not failures


async def test_the_lease_is_certain_only_for_the_registration_that_the_image_has(
    shared: InMemoryStore, start: Start
) -> None:
    metadata = await start(shared)
    boot_time, old_epoch = SystemClock().boot_time, metadata.broker_epoch
    assert metadata.lease_deadline() > boot_time()

    metadata.image = msgspec.structs.replace(metadata.image, revision=old_epoch - 1)
    assert metadata.lease_deadline() == -math.inf
    metadata.image = msgspec.structs.replace(metadata.image, revision=old_epoch)
    shared.sessions[-1].lost.set()
    assert metadata.lease_deadline() == -math.inf

    await until(metadata, lambda image: 1 in image.brokers and image.brokers[1].epoch > old_epoch)
    assert metadata.lease_deadline() > boot_time()


async def test_a_broker_whose_boot_is_unknown_is_intact_while_it_lives(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared, boot_id="")
    since = metadata.image.brokers[1].intact_since

    await _end_session(shared, metadata)

    image = await until(metadata, lambda image: 1 in image.brokers and image.brokers[1].epoch > since)
    assert image.brokers[1].intact_since == since


async def test_an_only_broker_becomes_the_controller_again(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    await create_topic(metadata, "t")
    old_epoch = metadata.image.controller_epoch
    await _end_session(shared, metadata)

    image = await until(metadata, lambda image: image.controller_id == 1 and image.controller_epoch > old_epoch)
    await until(metadata, lambda image: 1 in image.brokers and image.topics["t"].partitions[0].leader == 1)
    await _end_session(shared, metadata)
    await until(metadata, lambda later: later.controller_id == 1 and later.controller_epoch > image.controller_epoch)


async def test_registering_again_waits_for_the_store(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    old_epoch = metadata.broker_epoch
    refusals = 3
    session = shared.session

    async def unreachable(ttl: float) -> Session:
        nonlocal refusals
        refusals -= 1
        if refusals < 0:
            return await session(ttl)
        raise StoreUnreachableError("no server answered")

    shared.session = unreachable  # type: ignore[method-assign, assignment]
    await _end_session(shared, metadata)

    await until(metadata, lambda image: 1 in image.brokers and image.brokers[1].epoch > old_epoch)
    assert refusals == -1


async def test_a_log_directory_that_is_missing_may_have_held_anything(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared, log_dir_ids=["one", "two"])
    await create_topic(metadata, "t")
    await metadata.stop()

    without = await start(shared, log_dir_ids=["one"])
    assert without.image.topics["t"].partitions[0].leader_epoch == 1
    await without.stop()

    with_another = await start(shared, log_dir_ids=["one", "three"])
    assert with_another.image.topics["t"].partitions[0].leader_epoch == 1


async def test_a_draining_broker_hands_its_partitions_over(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    await create_topic(first, "t", 4, 2)
    await create_topic(first, "lonely", assignments={0: [1]})

    await asyncio.wait_for(first.drain(), 10)

    partitions = first.image.topics["t"].partitions
    assert [(each.leader, list(each.isr)) for each in partitions] == [(2, [2])] * 4
    assert first.image.topics["lonely"].partitions[0].leader == -1
    assert first.image.brokers[1].is_draining
    await first.stop()
    image = await until(second, lambda image: 1 not in image.brokers)
    assert image.known[1].clean_shutdown_epoch == first.broker_epoch


async def test_a_broker_alone_does_not_drain(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    await create_topic(metadata, "t")

    await metadata.drain()

    assert not metadata.image.brokers[1].is_draining
    assert metadata.image.topics["t"].partitions[0].leader == 1


async def test_draining_fails_when_the_store_is_away(
    shared: InMemoryStore, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other brokers take over when the session ends; a stop must not wait for the store."""
    first, _ = await start(shared, 1), await start(shared, 2)
    await until(first, lambda image: len(image.brokers) == 2)
    monkeypatch.setattr(membership, "_PATIENCE_SECONDS", 0.05)

    async def unreachable(*_: object) -> TxnResult:
        await asyncio.sleep(0)
        raise StoreUnreachableError("no server answered")

    monkeypatch.setattr(shared, "txn", unreachable)

    with pytest.raises(KafkaError, match="could not be announced"):
        await asyncio.wait_for(first.drain(), 30)


async def test_draining_fails_when_the_store_goes_away_after_the_announcement(
    shared: InMemoryStore, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller cannot elect others then; a stop must not wait until it can."""
    controller, stopping = await start(shared, 1), await start(shared, 2)
    await until(stopping, lambda image: len(image.brokers) == 2)
    await create_topic(stopping, "t", assignments={0: [2, 1]})
    monkeypatch.setattr(membership, "_PATIENCE_SECONDS", 0.05)
    txn, watched = shared.txn, asyncio.Event()

    async def unreachable(*_: object) -> TxnResult:
        await asyncio.sleep(0)
        raise StoreUnreachableError("no server answered")

    async def last(when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        monkeypatch.setattr(shared, "txn", unreachable)
        monkeypatch.setattr(shared, "range", unreachable)
        watched.set()
        return await txn(when, then)

    monkeypatch.setattr(shared, "txn", last)

    with pytest.raises(KafkaError, match="could not be announced"):
        await asyncio.wait_for(stopping.drain(), 30)

    assert watched.is_set()
    assert stopping.image.brokers[2].is_draining
    assert stopping.image.topics["t"].partitions[0].leader == 2
    assert controller.image.controller_id == 1


async def test_leaving_ends_when_the_store_goes_away_in_between(
    shared: InMemoryStore, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session then ends by itself, without the note that everything is on disk."""
    metadata = await start(shared)
    monkeypatch.setattr(membership, "_PATIENCE_SECONDS", 0.05)

    async def unreachable(*_: object) -> TxnResult:
        await asyncio.sleep(0)
        raise StoreUnreachableError("no server answered")

    monkeypatch.setattr(shared, "txn", unreachable)

    await asyncio.wait_for(metadata.stop(), 30)

    [session] = shared.sessions
    assert not session.lost.is_set()
    assert (await shared.range(metadata.keys.broker_id(1)))[0]

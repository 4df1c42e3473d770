"""A store that loses its cluster, or becomes older, under running brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.cluster_record import begin_cluster
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import ProducerIdBlocks
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, Delete, DeletePrefix, Put
from odradek.broker.metadata.time_limit import time_limit
from odradek.broker.metadata.values import ClusterRecord, encode
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import CLUSTER_ID, Start, until

KEYS = Keys()
RECORD = ClusterRecord(CLUSTER_ID, 1_700_000_000_000)


@pytest.fixture
async def store() -> AsyncIterator[InMemoryStore]:
    store = InMemoryStore()
    await begin_cluster(store, KEYS, RECORD, adopts=False)
    yield store
    await store.close()


async def _become(condition: Callable[[], bool]) -> None:
    """Return when the condition holds, which nothing but the progress of other tasks brings about."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - a freeze sets no event, because no part of the broker waits for one
            await asyncio.sleep(0.01)


async def _frozen(*brokers: Metadata) -> None:
    await _become(lambda: all(each.why_frozen is not None for each in brokers))


async def _lose_everything(store: InMemoryStore) -> list[KV]:
    """Delete the namespace as `etcdctl del --prefix` does; return what was in it."""
    kvs, _ = await store.range(KEYS.prefix)
    await store.txn((), (DeletePrefix(KEYS.prefix),))
    return kvs


def _begin_anew(store: InMemoryStore) -> None:
    """Lose everything, the revision too, without a change that a watch could see."""
    store.restore((), 0)


@pytest.mark.parametrize("deleted", [DeletePrefix(KEYS.prefix), Delete(KEYS.cluster), DeletePrefix(b"")])
async def test_a_namespace_that_vanishes_leaves_the_image_as_it_is(
    store: InMemoryStore, start: Start, caplog: pytest.LogCaptureFixture, deleted: DeletePrefix | Delete
) -> None:
    first, second = await start(store, 1, is_shared=True), await start(store, 2, is_shared=True)
    await create_topic(first, "t", 3, 2)
    await until(second, lambda image: "t" in image.topics and len(image.brokers) == 2)
    images = [first.image, second.image]
    published: list[object] = []
    for broker in (first, second):
        broker.on_change(published.append)

    await store.txn((), (deleted,))
    await _frozen(first, second)

    assert [first.image, second.image] == images
    assert published == []
    [message, _] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert message.startswith("metadata are frozen")
    assert "the metadata store has no cluster under /odradek/v1 any more" in message


async def test_nothing_is_written_into_a_store_that_has_lost_the_cluster(store: InMemoryStore, start: Start) -> None:
    """Else the same producer ids would be allocated again, and batches of new producers taken for duplicates."""
    metadata = await start(store, is_shared=True)
    blocks = ProducerIdBlocks(metadata)
    await _lose_everything(store)

    for change in (lambda: create_topic(metadata, "t"), blocks.next):
        with time_limit(500), pytest.raises(KafkaError) as caught:
            await change()
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT

    assert await store.range(b"") == ([], (await store.range(b""))[1])


async def test_a_transaction_that_is_faster_than_the_watch_is_not_applied_to_an_emptied_store(
    store: InMemoryStore, start: Start
) -> None:
    metadata = await start(store, is_shared=True)
    store.commit_now(DeletePrefix(KEYS.prefix))
    assert metadata.why_frozen is None, "the watch has had no turn yet"

    with time_limit(500), pytest.raises(KafkaError):
        await create_topic(metadata, "t")

    assert (await store.range(b""))[0] == []


async def test_metadata_go_on_when_everything_is_there_again(store: InMemoryStore, start: Start) -> None:
    failures: list[BaseException] = []
    first, second = [await start(store, each, is_shared=True, failures=failures) for each in (1, 2)]
    topic = await create_topic(first, "t", 3, 2)
    await until(second, lambda image: "t" in image.topics)
    epochs = [first.broker_epoch, second.broker_epoch]
    lost = await _lose_everything(store)
    await _frozen(first, second)

    await store.txn((), [Put(kv.key, kv.value) for kv in lost if not kv.lease])

    for broker, epoch in zip((first, second), epochs, strict=True):
        image = await until(
            broker, lambda image, old=epoch: [each.epoch > old for each in image.brokers.values()] == [True, True]
        )
        assert image.topics["t"].topic_id == topic.topic_id
    await _become(lambda: first.why_frozen is second.why_frozen is None)
    await create_topic(second, "another")
    assert failures == []


async def test_a_record_without_topics_removes_them_from_the_image(store: InMemoryStore, start: Start) -> None:
    """They are merely gone: no log may be deleted for that."""
    metadata = await start(store, is_shared=True)
    topic = await create_topic(metadata, "t")
    await _lose_everything(store)
    await _frozen(metadata)

    await store.txn((), (Put(KEYS.cluster, encode(RECORD)),))

    image = await until(metadata, lambda image: 1 in image.brokers and image.brokers[1].epoch > topic.name_revision)
    assert image.topics == {}
    assert topic.topic_id not in image.deleted


@pytest.mark.parametrize("record", [encode(msgspec.structs.replace(RECORD, id="another")), b"no json"])
async def test_a_record_of_another_cluster_is_not_accepted(store: InMemoryStore, start: Start, record: bytes) -> None:
    metadata = await start(store, is_shared=True)
    await create_topic(metadata, "t")
    await store.txn((), (Put(KEYS.cluster, record),))
    await _frozen(metadata)
    await store.txn((), (Put(KEYS.topic_config("t"), b'{"retention.ms":"1"}'),))

    await metadata.check_cluster()

    assert metadata.why_frozen is not None
    assert metadata.image.topics["t"].configs == {}


async def test_a_value_that_cannot_be_read_freezes_the_metadata_until_it_is_corrected(
    store: InMemoryStore, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[BaseException] = []
    metadata = await start(store, is_shared=True, failures=failures)
    await create_topic(metadata, "t")
    key = KEYS.topic_config("t")

    await store.txn((), (Put(key, b"no json"),))
    await _frozen(metadata)

    assert metadata.why_frozen is not None
    assert key.decode() in metadata.why_frozen
    assert metadata.image.topics["t"].configs == {}
    with time_limit(10), pytest.raises(KafkaError, match="did not answer in time"):
        await create_topic(metadata, "another")
    await metadata.check_cluster()
    assert metadata.why_frozen is not None

    await store.txn((), (Put(key, b'{"retention.ms":"1"}'),))

    await until(metadata, lambda image: image.topics["t"].configs == {"retention.ms": "1"})
    await _become(lambda: metadata.why_frozen is None)
    await create_topic(metadata, "another")
    assert failures == []


async def test_a_broker_that_lost_its_session_does_not_register_in_an_emptied_store(
    store: InMemoryStore, start: Start
) -> None:
    """A store that began anew is not noticed by a watch, which waits for a revision that is far away."""
    metadata = await start(store, is_shared=True)
    await create_topic(metadata, "t")
    [session] = store.sessions
    _begin_anew(store)

    session.lost.set()
    await _frozen(metadata)

    assert (await store.range(b""))[0] == []
    assert "t" in metadata.image.topics


async def test_a_store_that_became_older_freezes_until_the_next_start(store: InMemoryStore, start: Start) -> None:
    metadata = await start(store, is_shared=True)
    await create_topic(metadata, "t")
    older = store.revision - 1
    store.restore((await store.range(b""))[0], older)

    await metadata.check_cluster()

    assert metadata.why_frozen == (
        f"the metadata store is at revision {older}, and has been at {older + 1}: it is an older copy"
    )
    for _ in range(10):
        await store.txn((), (Put(b"foreign", b""),))
    await metadata.check_cluster()
    assert metadata.why_frozen is not None


async def test_a_deleted_registration_is_replaced(store: InMemoryStore, start: Start) -> None:
    """By an operator, for example; the session lives on."""
    failures: list[BaseException] = []
    metadata = await start(store, is_shared=True, failures=failures)
    epoch = metadata.broker_epoch

    await store.txn((), (Delete(KEYS.broker_id(1)),))

    image = await until(metadata, lambda image: 1 in image.brokers and image.brokers[1].epoch > epoch)
    assert metadata.broker_epoch == image.brokers[1].epoch
    assert len([each for each in store.sessions if not each.lost.is_set()]) == 1
    assert failures == []

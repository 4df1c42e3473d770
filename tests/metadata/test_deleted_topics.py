from __future__ import annotations

from odradek.broker.metadata.administration.topics import create_topic, delete_topic
from odradek.broker.metadata.deleted_topics import KEPT_MS, deletion_record, sweep
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import MAX_OPERATIONS, MetadataStore
from odradek.broker.testing.clock import ManualClock
from tests.metadata.conftest import Start, until


async def test_records_are_deleted_when_their_time_is_over(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    assert isinstance(metadata.clock, ManualClock)
    old = await create_topic(metadata, "old")
    await delete_topic(metadata, name="old")
    metadata.clock.advance(1000)
    new = await create_topic(metadata, "new")
    await delete_topic(metadata, name="new")

    metadata.clock.advance(KEPT_MS - 1001)
    await sweep(metadata)
    assert metadata.image.deleted.keys() == {old.topic_id, new.topic_id}

    metadata.clock.advance(1)
    await sweep(metadata)
    assert metadata.image.deleted.keys() == {new.topic_id}


async def test_any_number_of_records_is_deleted(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    assert isinstance(metadata.clock, ManualClock)
    topic = await create_topic(metadata, "t")
    for number in range(2 * MAX_OPERATIONS):
        other = type(topic)("t", number.to_bytes(16), [])
        await metadata.commit((), (deletion_record(metadata, other),))
    metadata.clock.advance(KEPT_MS)

    await sweep(metadata)

    assert not metadata.image.deleted


async def test_only_the_controller_deletes_records(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await create_topic(first, "t")
    await delete_topic(first, name="t")
    await until(second, lambda image: bool(image.deleted))
    assert isinstance(second.clock, ManualClock)
    second.clock.advance(KEPT_MS + 1)

    await sweep(second)

    assert second.image.deleted

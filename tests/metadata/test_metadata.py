from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odradek.broker.metadata.administration.topic_writes import batch_size
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import ImageChange, MetadataImage
from odradek.broker.metadata.registration import Identity, Registration, RegistrationError
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore
from odradek.broker.metadata.store.store import (
    Batch,
    Delete,
    DeletePrefix,
    MetadataStore,
    Put,
    StoreError,
    StoreFailedError,
    absent,
)
from odradek.broker.metadata.values import Assignment, decode_cluster, encode
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import CLUSTER_ID, LISTENERS, Start, until


async def test_a_single_broker_is_a_cluster(store: MetadataStore, start: Start) -> None:
    metadata = await start(store, 7, broker_rack="r")

    image = metadata.image
    assert (image.cluster_id, image.controller_id) == (CLUSTER_ID, 7)
    broker = image.brokers[7]
    assert (broker.node_id, broker.listeners, broker.rack) == (7, LISTENERS, "r")
    assert broker.epoch == metadata.broker_epoch > 0
    ((kv,), _) = await store.range(metadata.keys.cluster)
    assert decode_cluster(kv.value).created == 1_700_000_000_000


async def test_after_a_clean_stop_nothing_is_registered(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    keys = metadata.keys

    await metadata.stop()

    assert (await store.range(keys.broker_ids))[0] == []
    assert (await store.range(keys.controller))[0] == []
    with pytest.raises(StoreError):
        await metadata.wait_for_revision(10**9)


async def test_stopping_twice_is_harmless(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)

    await metadata.stop()
    await metadata.stop()


@pytest.mark.parametrize(
    ("clean", "boot_id", "epoch"),
    [(True, "boot 1", 0), (True, "boot 2", 0), (False, "boot 1", 0), (False, "boot 2", 1), (False, "", 1)],
)
async def test_leader_epochs_increase_only_if_records_may_be_lost(
    tmp_path: Path, start: Start, clean: bool, boot_id: str, epoch: int
) -> None:
    """Kept: a clean stop, or a killed process while the operating system, with the page cache, went on."""
    store = await SqliteStore.open(tmp_path / FILE_NAME)
    metadata = await start(store, boot_id="boot 1" if boot_id else "")
    await create_topic(metadata, "t", 2)
    await metadata.stop(clean=clean)
    await store.close()

    store = await SqliteStore.open(tmp_path / FILE_NAME)
    restarted = await start(store, boot_id=boot_id)

    partitions = restarted.image.topics["t"].partitions
    assert [(partition.leader, partition.leader_epoch) for partition in partitions] == [(1, epoch), (1, epoch)]
    assert all(partition.partition_epoch == epoch for partition in partitions)
    await store.close()


async def test_repeated_restarts_without_losses_write_no_partition(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    created = await create_topic(metadata, "t")
    for _ in range(3):
        await metadata.stop()
        metadata = await start(shared)

    assert metadata.image.topics["t"].partitions == created.partitions


async def test_a_start_that_was_killed_does_not_hide_a_loss(shared: InMemoryStore, start: Start) -> None:
    """Boot 1 loses power. At boot 2 the broker registers and is killed before it runs; then it is started again."""
    metadata = await start(shared, boot_id="boot 1")
    await create_topic(metadata, "t")
    await metadata.stop(clean=False)
    await shared.revoke((await shared.range(metadata.keys.broker_ids))[0][0].lease)
    identity = Identity(1, ("log dir 1",), "boot 2", "stillborn", None, LISTENERS)
    session = await shared.session(60)
    await Registration(shared, metadata.keys, session, identity).register()
    await session.revoke()

    restarted = await start(shared, boot_id="boot 2")

    assert restarted.image.topics["t"].partitions[0].leader_epoch == 1


async def test_a_replaced_log_directory_may_have_lost_everything(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared, log_dir_id="old")
    await create_topic(metadata, "t")
    await metadata.stop()

    replaced = await start(shared, log_dir_id="new")

    assert replaced.image.topics["t"].partitions[0].leader_epoch == 1


async def test_possible_losses_are_logged_in_one_line(
    shared: InMemoryStore, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    metadata = await start(shared, boot_id="boot 1")
    await create_topic(metadata, "t", 30)
    await metadata.stop(clean=False)
    await shared.revoke((await shared.range(metadata.keys.broker_ids))[0][0].lease)

    with caplog.at_level(logging.WARNING):
        await start(shared, boot_id="boot 2")

    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith('records may be lost count=30 partitions="t-')


async def test_a_log_directory_of_another_cluster_is_refused(shared: InMemoryStore, start: Start) -> None:
    await start(shared, 1)

    with pytest.raises(RegistrationError, match=f"cluster {CLUSTER_ID}.*to other"):
        await start(shared, 2, cluster_id="other")


async def test_callbacks_run_before_waits_end(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    seen: list[MetadataImage] = []
    metadata.on_change(lambda change: seen.append(change.after))

    result = await metadata.commit((), (Put(metadata.keys.topic_config("x"), b"{}"),))

    assert seen[-1] is metadata.image
    assert metadata.image.revision == result.revision
    assert [image.revision for image in seen] == sorted({image.revision for image in seen})


async def test_a_refused_transaction_is_answered_after_a_change_of_foreign_keys(
    store: MetadataStore, start: Start
) -> None:
    """Its revision is the store's, for which this broker's watch has no batch."""
    metadata = await start(store)
    foreign = await store.txn((), (Put(b"/of another program", b""),))

    refused = metadata.commit((absent(metadata.keys.cluster),), (Put(metadata.keys.cluster, b""),))

    assert (await asyncio.wait_for(refused, 10)) == (False, foreign.revision)
    assert metadata.image.revision == foreign.revision


async def test_progress_without_changes_calls_no_callback(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    seen: list[MetadataImage] = []
    metadata.on_change(lambda _old, image: seen.append(image))
    foreign = await store.txn((), (Put(b"/of another program", b""),))

    await asyncio.wait_for(metadata.wait_for_revision(foreign.revision), 10)

    assert seen == []


async def test_an_error_in_a_callback_is_reported_and_the_others_run(store: MetadataStore, start: Start) -> None:
    failures: list[BaseException] = []
    metadata = await start(store, failures=failures)
    seen: list[int] = []

    def fail(_change: ImageChange) -> None:
        raise RuntimeError("no disk")

    metadata.on_change(fail)
    metadata.on_change(lambda change: seen.append(change.after.revision))

    result = await metadata.commit((), (Put(metadata.keys.topic_config("x"), b"{}"),))

    assert seen == [result.revision]
    assert [str(error) for error in failures] == ["no disk"]


async def test_changes_go_on_after_a_cancelled_wait(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    waiting = asyncio.ensure_future(metadata.wait_for_revision(metadata.image.revision + 1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    await metadata.commit((), (Put(metadata.keys.topic_config("x"), b"{}"),))
    assert waiting.cancelled()


async def test_an_image_that_is_too_old_for_the_history_is_reloaded(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    key = metadata.keys.topic_config("x")
    # More revisions than the store keeps, without a turn of the loop for the watch in between.
    for number in range(20_000):
        shared.commit_now(Put(key, b'{"n":"%d"}' % number))

    image = await until(metadata, lambda image: "x" in image.topic_configs)

    assert image.topic_configs["x"][0] == {"n": "19999"}
    await create_topic(metadata, "t")


async def test_a_failed_store_stops_the_broker_and_fails_requests(tmp_path: Path, start: Start) -> None:
    store = await SqliteStore.open(tmp_path / FILE_NAME)
    failures: list[BaseException] = []
    metadata = await start(store, failures=failures)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.execute("DROP TABLE kv")

    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            await create_topic(metadata, "t")
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR

    assert [type(error) for error in failures] == [StoreFailedError]
    await metadata.stop()
    await store.close()


class _BreakingStore(InMemoryStore):
    """A store that cannot write keys that start with `broken`."""

    broken = b"\xff"

    async def _persist(self, batch: Batch) -> None:
        if any(change.key.startswith(self.broken) for change in batch.changes):
            raise OSError(28, "No space left on device")


async def test_a_start_fails_if_leaders_cannot_be_written(start: Start) -> None:
    store = _BreakingStore()
    metadata = await start(store, boot_id="boot 1")
    await create_topic(metadata, "t")
    await metadata.stop(clean=False)
    await store.revoke((await store.range(metadata.keys.broker_ids))[0][0].lease)
    store.broken = metadata.keys.topics
    failures: list[BaseException] = []

    with pytest.raises(StoreFailedError, match="No space left"):
        await asyncio.wait_for(start(store, boot_id="boot 2", failures=failures), 10)

    assert [type(error) for error in failures] == [StoreFailedError]
    await store.close()


async def test_leftovers_of_interrupted_creations_are_deleted(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    left = b"\x09" * 16
    await store.txn((), (Put(metadata.keys.assignment(left, 60), encode(Assignment([1]))),))
    await create_topic(metadata, "t", 100)
    await metadata.stop()

    restarted = await start(store)

    assert (restarted.image.uncovered, list(restarted.image.topics)) == ({}, ["t"])
    assert (await store.range(metadata.keys.topic(left)))[0] == []


async def test_a_creation_whose_batches_are_deleted_starts_again(store: MetadataStore, start: Start) -> None:
    metadata = await start(store)
    topic_ids: list[bytes] = []

    def sweep(change: ImageChange) -> None:
        image = change.after
        if image.uncovered and not topic_ids:
            topic_ids.extend(image.uncovered)
            sweeping.append(asyncio.ensure_future(store.txn((), (DeletePrefix(metadata.keys.topic(topic_ids[0])),))))

    sweeping: list[asyncio.Future[object]] = []
    metadata.on_change(sweep)

    partitions = batch_size(metadata) + 40
    topic = await create_topic(metadata, "t", partitions)

    await asyncio.gather(*sweeping)
    assert topic.topic_id not in topic_ids
    assert topic_ids
    assert len(topic.partitions) == partitions
    assert len((await store.range(metadata.keys.topics))[0]) == 1 + 2 * partitions


async def test_the_key_of_a_controller_is_deleted_when_it_stops(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    await shared.txn((), (Delete(metadata.keys.controller),))

    image = await until(metadata, lambda image: image.controller_id == 1 and image.revision > metadata.broker_epoch + 2)

    assert image.controller_epoch == image.revision

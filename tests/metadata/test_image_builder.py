from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.metadata.image import ImageChange, MetadataImage, PartitionImage
from odradek.broker.metadata.image_builder import load_image, next_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import KV, Batch, Change, Delete, DeletePrefix, Op, Put, StoreError
from odradek.broker.metadata.values import (
    RUNNING,
    STARTING,
    Assignment,
    BrokerRegistration,
    ClusterRecord,
    ControllerRecord,
    DeletedTopic,
    KnownBroker,
    Listener,
    PartitionState,
    TopicRecord,
    decode_known,
    decode_partition_state,
    encode,
    encode_configs,
    encode_levels,
)
from odradek.protocol.uuids import uuid_to_text

KEYS = Keys()
TOPIC_ID = bytes(range(1, 17))
OTHER_ID = bytes(range(2, 18))
NEWER = {"transaction.version": 3}
LISTENER = Listener("PLAINTEXT", "PLAINTEXT", "host", 9092)


def _put(key: bytes, value: msgspec.Struct) -> Put:
    return Put(key, encode(value))


def _partition(topic_id: bytes, index: int, leader: int = 1, epoch: int = 0) -> list[Op]:
    return [
        _put(KEYS.partition_state(topic_id, index), PartitionState(leader, epoch, {leader: 7}, epoch, elr={3: 9})),
        _put(KEYS.assignment(topic_id, index), Assignment([leader, 2], adding=[5])),
    ]


def _topic(name: str, topic_id: bytes, partitions: int) -> Put:
    return _put(KEYS.topic_name(name), TopicRecord(uuid_to_text(topic_id), partitions, 1))


def _broker(node_id: int, state: str = RUNNING, intact_since: int = 0) -> Put:
    registration = BrokerRegistration([LISTENER], "rack", "incarnation", 0, "boot", state, None, intact_since)
    return _put(KEYS.broker_id(node_id), registration)


async def _changes(*txns: list[Op]) -> list[ImageChange]:
    """Apply the transactions and return the change by each; every image must equal a load of the whole store."""
    store = InMemoryStore()
    image, changes = MetadataImage(), []
    watch = store.watch(KEYS.prefix, 0)
    for then in txns:
        result = await store.txn((), then)
        changes.append(next_image(KEYS, image, await anext(watch)))
        assert changes[-1].before is image
        image = changes[-1].after
        kvs, revision = await store.range(KEYS.prefix)
        assert image == load_image(KEYS, MetadataImage(), kvs, revision).after
        assert image.revision == result.revision == revision
    await store.close()
    return changes


async def _images(*txns: list[Op]) -> list[MetadataImage]:
    """Return the image after each transaction; see `_changes`."""
    return [change.after for change in await _changes(*txns)]


async def test_a_topic_appears_with_all_its_partitions() -> None:
    (image,) = await _images([_topic("t", TOPIC_ID, 2), *_partition(TOPIC_ID, 0), *_partition(TOPIC_ID, 1, leader=2)])

    topic = image.topics["t"]
    assert image.topics_by_id == {TOPIC_ID: topic}
    assert (topic.name, topic.topic_id, topic.configs, topic.name_revision) == ("t", TOPIC_ID, {}, 1)
    assert topic.partitions[1] == PartitionImage(
        leader=2,
        leader_epoch=0,
        replicas=[2, 2],
        isr={2: 7},
        partition_epoch=0,
        eligible_leader_replicas={3: 9},
        adding_replicas=[5],
        removing_replicas=[],
        state_revision=1,
        state_value=b'{"l":2,"e":0,"isr":{"2":7},"pe":0,"el":{"3":9},"rec":0}',
        created_revision=1,
    )


async def test_partitions_without_a_name_are_not_a_topic() -> None:
    images = await _images(_partition(TOPIC_ID, 1), [_topic("t", TOPIC_ID, 2), *_partition(TOPIC_ID, 0)])

    assert (images[0].topics, list(images[0].uncovered)) == ({}, [TOPIC_ID])
    assert (len(images[1].topics["t"].partitions), images[1].uncovered) == (2, {})


async def test_a_topic_grows_when_the_record_of_its_name_does() -> None:
    images = await _images(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0)],
        _partition(TOPIC_ID, 1),
        [_topic("t", TOPIC_ID, 3), *_partition(TOPIC_ID, 2)],
    )

    assert [len(image.topics["t"].partitions) for image in images] == [1, 1, 3]
    assert images[2].uncovered == {}


async def test_a_topic_shrinks_with_the_record_of_its_name() -> None:
    """Only the restore of a snapshot does that."""
    gone: list[Op] = [Delete(KEYS.partition_state(TOPIC_ID, 1)), Delete(KEYS.assignment(TOPIC_ID, 1))]
    images = await _images(
        [_topic("t", TOPIC_ID, 2), *_partition(TOPIC_ID, 0), *_partition(TOPIC_ID, 1)],
        [_topic("t", TOPIC_ID, 1), *gone],
    )

    assert [len(image.topics["t"].partitions) for image in images] == [2, 1]
    assert images[1].uncovered == {}


async def test_a_change_of_one_partition_copies_only_its_topic() -> None:
    images = await _images(
        [_topic("t", TOPIC_ID, 2), *_partition(TOPIC_ID, 0), *_partition(TOPIC_ID, 1)],
        [_topic("u", OTHER_ID, 1), *_partition(OTHER_ID, 0)],
        [_partition(TOPIC_ID, 1, epoch=4)[0]],
    )

    before, after = images[1].topics, images[2].topics
    assert after["u"] is before["u"]
    assert after["t"].partitions[0] is before["t"].partitions[0]
    assert (before["t"].partitions[1].leader_epoch, after["t"].partitions[1].leader_epoch) == (0, 4)
    assert after["t"].partitions[1].replicas == [1, 2]
    assert images[2].topics_by_id[TOPIC_ID] is after["t"]


async def test_a_change_names_only_the_topics_that_it_touches() -> None:
    changes = await _changes(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0)],
        [_topic("u", OTHER_ID, 1), *_partition(OTHER_ID, 0)],
        [_partition(TOPIC_ID, 0, epoch=4)[0]],
        [Put(KEYS.topic_config("u"), encode_configs({"a": "b"}))],
        [_broker(1)],
        [Delete(KEYS.topic_name("u")), DeletePrefix(KEYS.topic(OTHER_ID))],
    )

    named = [list(change.topic_ids) for change in changes]
    assert named == [[TOPIC_ID], [OTHER_ID], [TOPIC_ID], [OTHER_ID], [], [OTHER_ID]]
    assert list(changes[-1].topics()) == [(changes[-1].before.topics["u"], None)]


async def test_a_change_of_a_leader_or_a_property_reassigns_nothing() -> None:
    changes = await _changes(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0)],
        [_put(KEYS.partition_state(TOPIC_ID, 0), PartitionState(2, 1, {2: 8}, 1))],
        [Put(KEYS.topic_config("t"), encode_configs({"a": "b"}))],
        [_put(KEYS.assignment(TOPIC_ID, 0), Assignment([2, 3]))],
        [_topic("t", TOPIC_ID, 2), *_partition(TOPIC_ID, 1)],
        [Delete(KEYS.topic_name("t")), DeletePrefix(KEYS.topic(TOPIC_ID))],
    )

    assert [list(change.reassigned()) for change in changes] == [["t"], [], [], ["t"], ["t"], ["t"]]


async def test_a_reload_names_the_topics_of_both_images() -> None:
    (before, after) = await _images(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0)],
        [
            Delete(KEYS.topic_name("t")), DeletePrefix(KEYS.topic(TOPIC_ID)),
            _topic("u", OTHER_ID, 1), *_partition(OTHER_ID, 0),
        ],
    )  # fmt: skip
    kvs = [KV(KEYS.topic_name("u"), encode(TopicRecord(uuid_to_text(OTHER_ID), 1, 1)), 2, 2)]
    kvs += [KV(op.key, op.value, 2, 2) for op in _partition(OTHER_ID, 0) if isinstance(op, Put)]

    change = load_image(KEYS, before, kvs, 2)

    assert (change.before, change.after, list(change.topic_ids)) == (before, after, [TOPIC_ID, OTHER_ID])


async def test_known_brokers_and_deleted_topics_are_part_of_the_image() -> None:
    known = KnownBroker(last_epoch=7, log_dir="a", boot_id="b", rack="r", log_dirs=["a", "c"])
    deleted = DeletedTopic("t", 1000)
    images = await _images(
        [_put(KEYS.broker_known(3), known), _put(KEYS.topic_deleted(TOPIC_ID), deleted)],
        [Delete(KEYS.broker_known(3)), Delete(KEYS.topic_deleted(TOPIC_ID))],
    )

    assert [(image.known, image.deleted) for image in images] == [({3: known}, {TOPIC_ID: deleted}), ({}, {})]


def test_values_of_earlier_versions_can_be_read() -> None:
    state = decode_partition_state(b'{"l":1,"e":0,"isr":{"1":7},"pe":0,"elr":[],"rec":0}')
    known = decode_known(b'{"last_epoch":7,"log_dir":"a","boot_id":"b","clean_shutdown_epoch":7,"intact_since":5}')

    assert (state.isr, state.elr) == ({1: 7}, {})
    assert known == KnownBroker(7, "a", "b", 7, 5, rack=None, log_dirs=[])


async def test_a_deleted_topic_leaves_nothing() -> None:
    images = await _images(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0), Put(KEYS.topic_config("t"), encode_configs({"a": "b"}))],
        [Delete(KEYS.topic_name("t")), DeletePrefix(KEYS.topic(TOPIC_ID)), Delete(KEYS.topic_config("t"))],
    )

    assert msgspec.structs.replace(images[1], revision=0) == MetadataImage()


async def test_a_name_may_be_created_again_with_another_id() -> None:
    images = await _images(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0)],
        [Delete(KEYS.topic_name("t")), DeletePrefix(KEYS.topic(TOPIC_ID))],
        [_topic("t", OTHER_ID, 1), *_partition(OTHER_ID, 0)],
    )

    assert images[2].topics["t"].topic_id == OTHER_ID
    assert list(images[2].topics_by_id) == [OTHER_ID]


async def test_a_topic_has_its_properties_whether_they_are_set_before_or_after_it() -> None:
    images = await _images(
        [_topic("t", TOPIC_ID, 1), *_partition(TOPIC_ID, 0), Put(KEYS.topic_config("t"), encode_configs({"a": "1"}))],
        [Put(KEYS.topic_config("t"), encode_configs({"a": "2"}))],
        [Delete(KEYS.topic_config("t"))],
    )

    topics = [image.topics["t"] for image in images]
    assert [(topic.configs, topic.configs_revision) for topic in topics] == [({"a": "1"}, 1), ({"a": "2"}, 2), ({}, 0)]
    assert all(topic.name_revision == 1 for topic in topics)


async def test_starting_brokers_are_not_listed() -> None:
    images = await _images(
        [_broker(2), _broker(1, STARTING)], [_broker(1, intact_since=1)], [Delete(KEYS.broker_id(2))]
    )

    assert [list(image.brokers) for image in images] == [[2], [1, 2], [1]]
    assert sorted(images[0].registered) == [1, 2]
    broker = images[1].brokers[1]
    assert (broker.epoch, broker.revision, broker.listeners, broker.rack) == (1, 2, [LISTENER], "rack")
    assert (broker.intact_since, images[1].brokers[2].intact_since) == (1, 1)


async def test_the_controller_and_the_cluster() -> None:
    images = await _images(
        [_put(KEYS.cluster, ClusterRecord("id", 0)), _put(KEYS.controller, ControllerRecord(3, "x"))],
        [Delete(KEYS.controller)],
        [_put(KEYS.controller, ControllerRecord(4, "y"))],
    )

    assert [(image.cluster_id, image.controller_id, image.controller_epoch) for image in images] == [
        ("id", 3, 1),
        ("id", -1, 0),
        ("id", 4, 3),
    ]


async def test_a_brokers_own_properties_come_before_those_of_all_brokers() -> None:
    images = await _images(
        [
            Put(KEYS.broker_config(None), encode_configs({"a": "all", "b": "all"})),
            Put(KEYS.broker_config(1), encode_configs({"a": "one"})),
        ],
        [Delete(KEYS.broker_config(1))],
    )

    assert images[0].dynamic_configs(1) == {"a": "one", "b": "all"}
    assert images[0].dynamic_configs(2) == {"a": "all", "b": "all"}
    assert images[1].dynamic_configs(1) == {"a": "all", "b": "all"}


async def test_a_group_of_any_id_may_have_properties() -> None:
    key = KEYS.group_config("a/group/ü")
    images = await _images([Put(key, encode_configs({"a": "1"}))], [Delete(key)])

    assert images[0].group_configs == {"a/group/ü": ({"a": "1"}, 1)}
    assert images[1].group_configs == {}


async def test_keys_of_a_later_version_change_nothing() -> None:
    (image,) = await _images([Put(KEYS.prefix + b"/acl/abc", b"?")])

    assert image == MetadataImage(revision=1)


def test_a_revision_without_changes_increases_that_of_the_image() -> None:
    image = next_image(KEYS, MetadataImage(revision=3, cluster_id="c"), Batch(9, ())).after

    assert (image.revision, image.cluster_id) == (9, "c")


@pytest.mark.parametrize(
    "kv",
    [
        KV(KEYS.partition_state(TOPIC_ID, 0), b"{", 1, 1),
        KV(KEYS.partition_state(TOPIC_ID, 0), b'{"l":1}', 1, 1),
        KV(KEYS.broker_id(1), b"[]", 1, 1),
        KV(KEYS.broker_ids + b"x", b"{}", 1, 1),
        KV(KEYS.topic_name("t"), b'{"id":"AQIDBAUGBwgJCgsMDQ4PEA","partitions":1,"rf":1}', 1, 1),
    ],
)
def test_a_malformed_value_raises_store_error(kv: KV) -> None:
    with pytest.raises(StoreError):
        next_image(KEYS, MetadataImage(), Batch(1, (Change(kv.key, kv),)))


def test_a_rewritten_value_keeps_unknown_fields() -> None:
    newer = b'{"l":1,"e":0,"isr":{"1":7},"pe":0,"el":{},"rec":0,"later":{"x":[1]}}'

    rewritten = encode(PartitionState(2, 1, {2: 8}, 1), newer)

    assert msgspec.json.decode(rewritten) == {
        "l": 2, "e": 1, "isr": {"2": 8}, "pe": 1, "el": {}, "rec": 0, "later": {"x": [1]},
    }  # fmt: skip


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.sampled_from("tuv"), st.integers(1, 3)),
        st.tuples(st.just("delete"), st.sampled_from("tuv"), st.just(0)),
        st.tuples(st.just("lead"), st.sampled_from("tuv"), st.integers(1, 9)),
        st.tuples(st.just("config"), st.sampled_from("tuv"), st.integers(0, 2)),
        st.tuples(st.just("leave"), st.sampled_from("tuv"), st.integers(1, 3)),
    ),
    max_size=15,
)


@given(_STEPS)
def test_applying_changes_and_loading_give_the_same_image(steps: list[tuple[str, str, int]]) -> None:
    existing: dict[str, bytes] = {}
    txns: list[list[Op]] = []
    for number, (step, name, argument) in enumerate(steps):
        topic_id = existing.get(name)
        if step == "create" and topic_id is None:
            topic_id = existing[name] = bytes([number + 1]) * 16
            partitions = [op for index in range(argument) for op in _partition(topic_id, index)]
            txns.append([_topic(name, topic_id, argument), *partitions])
        elif step == "leave":
            txns.append(_partition(bytes([number + 100]) * 16, argument))
        elif step == "config":
            key = KEYS.topic_config(name)
            txns.append([Put(key, encode_configs({"n": str(argument)}))] if argument else [Put(key, b"{}")])
        elif topic_id is not None and step == "delete":
            del existing[name]
            txns.append([Delete(KEYS.topic_name(name)), DeletePrefix(KEYS.topic(topic_id))])
        elif topic_id is not None and step == "lead":
            txns.append([_partition(topic_id, 0, epoch=argument)[0]])
    asyncio.run(_check(txns))


async def _check(txns: list[list[Op]]) -> None:
    await _images(*txns)


async def test_levels_of_features_are_at_most_those_of_this_version() -> None:
    stored = encode_levels({"transaction.version": 1, "of.another.version": 7})
    images = [
        change.after
        for change in await _changes([Put(KEYS.features, stored)], [Put(KEYS.features, encode_levels(NEWER))])
    ]

    assert MetadataImage().transaction_version == 2
    assert images[0].features == {"group.version": 1, "transaction.version": 1, "metadata.version": 30}
    assert (images[0].feature_levels["of.another.version"], images[0].features_revision) == (7, 1)
    assert images[1].transaction_version == 2

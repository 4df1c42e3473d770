from __future__ import annotations

from odradek.broker.metadata.client_quotas import quota_key
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, Delete, Op, Put
from odradek.broker.metadata.values import PartitionState, TopicRecord, decode_partition_state, encode
from odradek.broker.quotas.entities import entity_of
from odradek.broker.testing.snapshots.metadata_rewrite import MetadataCopy
from odradek.protocol.uuids import uuid_to_text

KEYS = Keys()
A, B = bytes(range(16)), bytes(range(16, 32))
NODE, EPOCH = 1, 7


def kv(key: bytes, value: bytes) -> KV:
    return KV(key, value, 1, 1)


def state(leader_epoch: int = 0, broker_epoch: int = EPOCH) -> bytes:
    return encode(PartitionState(NODE, leader_epoch, {NODE: broker_epoch}, 3))


def topic(name: str, topic_id: bytes, value: bytes) -> list[KV]:
    record = encode(TopicRecord(uuid_to_text(topic_id), 1, 1))
    return [kv(KEYS.topic_name(name), record), kv(KEYS.partition_state(topic_id, 0), value)]


def operations(then: list[KV], now: list[KV]) -> dict[bytes, bytes | None]:
    """The values that a restore puts, None for keys that it deletes."""
    made: list[Op] = MetadataCopy(KEYS, then).operations(now, NODE, EPOCH, 1234)
    found: dict[bytes, bytes | None] = {}
    for operation in made:
        assert isinstance(operation, Put | Delete)
        found[operation.key] = operation.value if isinstance(operation, Put) else None
    return found


def test_nothing_is_written_if_nothing_has_changed() -> None:
    kvs = [*topic("a", A, state()), kv(KEYS.topic_config("a"), b"{}")]
    assert operations(kvs, kvs) == {}


def test_what_belongs_to_the_running_process_stays() -> None:
    keys = (KEYS.cluster, KEYS.controller, KEYS.next_producer_id, KEYS.broker_id(1), KEYS.broker_known(1))
    assert operations([kv(key, b"then") for key in keys], [kv(key, b"now") for key in keys]) == {}
    assert operations([], [kv(key, b"now") for key in keys]) == {}
    assert operations([kv(key, b"then") for key in keys], []) == {}


def test_other_keys_come_back_and_go() -> None:
    changed, gone, new = KEYS.topic_config("a"), KEYS.group_config("g"), KEYS.broker_config(None)
    then = [kv(changed, b"1"), kv(gone, b"2")]
    assert operations(then, [kv(changed, b"3"), kv(new, b"4")]) == {changed: b"1", gone: b"2", new: None}


def test_client_quotas_come_back_and_go() -> None:
    changed, new = (quota_key(KEYS, entity_of([("user", name)])) for name in ("alice", "bob"))
    then = [kv(changed, b'{"producer_byte_rate":1.0}')]
    now = [kv(changed, b'{"producer_byte_rate":2.0}'), kv(new, b"{}")]
    assert operations(then, now) == {changed: b'{"producer_byte_rate":1.0}', new: None}


def test_the_leader_epoch_of_a_topic_that_stayed_is_todays() -> None:
    assert operations(topic("a", A, state(0, 5)), topic("a", A, state(4))) == {}


def test_a_deleted_topic_comes_back_without_the_record_of_its_deletion() -> None:
    then = topic("a", A, state(2))
    made = operations(then, [kv(KEYS.topic_deleted(A), b"{}")])
    assert made == {**{each.key: each.value for each in then}, KEYS.topic_deleted(A): None}


def test_after_a_start_it_comes_back_in_a_later_leader_epoch_than_all_others() -> None:
    made = operations(topic("a", A, state(2, 5)), topic("b", B, state(6)))
    value = made[KEYS.partition_state(A, 0)]
    assert value is not None
    found = decode_partition_state(value)
    assert (found.leader_epoch, found.isr, found.partition_epoch) == (6, {NODE: EPOCH}, 4)


def test_a_new_topic_goes_with_a_record_of_its_deletion() -> None:
    now = topic("b", B, state())
    made = operations([], now)
    assert [made.pop(each.key) for each in now] == [None, None]
    assert made == {KEYS.topic_deleted(B): b'{"name":"b","deleted_ms":1234}'}


def test_records_of_earlier_deletions_stay() -> None:
    record = kv(KEYS.topic_deleted(B), b'{"name":"b","deleted_ms":1}')
    assert operations([], [record]) == {}

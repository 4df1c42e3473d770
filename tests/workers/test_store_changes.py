from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Cmp, DeletePrefix, Op, Put, TxnResult, read_key
from odradek.broker.metadata.values import (
    Assignment,
    KnownBroker,
    PartitionState,
    decode_assignment,
    decode_known,
    decode_partition_state,
    encode,
)
from odradek.broker.workers.plan import Epochs, MovedReplicas, Plan
from odradek.broker.workers.store_changes import NewBroker, change_store, moved_assignment, moved_state
from odradek.protocol.uuids import uuid_to_text

KEYS = Keys()
TOPIC_ID = bytes(range(16))
TO_WORKER_1 = {1: NewBroker(1001, Epochs(last=40, intact_since=30), former=Epochs(last=20, intact_since=10))}


def test_a_replica_gets_the_place_of_the_former_one() -> None:
    moved = moved_assignment(Assignment([2, 1, 3], adding=[1], removing=[3]), TO_WORKER_1)
    assert moved == Assignment([2, 1001, 3], adding=[1001], removing=[3])


def test_a_new_leader_has_a_new_epoch() -> None:
    state = moved_state(PartitionState(1, 5, {1: 20, 2: 9}, 7), TO_WORKER_1)
    assert state == PartitionState(1001, 6, {1001: 40, 2: 9}, 8)


def test_the_leader_of_another_machine_keeps_its_epoch() -> None:
    state = moved_state(PartitionState(2, 5, {2: 9}, 7, elr={1: 15}), TO_WORKER_1)
    assert state == PartitionState(2, 5, {2: 9}, 8, elr={1001: 40})


def test_a_partition_without_a_leader_has_none_afterwards() -> None:
    assert moved_state(PartitionState(-1, 5, {1: 20}, 7), TO_WORKER_1) == PartitionState(-1, 5, {1001: 40}, 8)


@pytest.mark.parametrize(("entry", "moved"), [(10, 40), (9, 9), (0, 0), (-20, -20)])
def test_a_replica_that_has_lost_records_is_not_electable_afterwards(entry: int, moved: int) -> None:
    """Entries below `intact_since` do not count, also of the new broker."""
    assert moved_state(PartitionState(-1, 5, {1: entry}, 7), TO_WORKER_1).isr == {1001: moved}


def test_a_lost_replica_does_not_become_electable_by_an_older_worker() -> None:
    older = {1001: NewBroker(1, Epochs(last=6, intact_since=3), former=Epochs(last=20, intact_since=10))}
    assert moved_state(PartitionState(-1, 5, {1001: 9}, 7), older).isr == {1: 2}


def _plan(partitions: int) -> Plan:
    return Plan(
        cluster_id="cluster",
        node_id=1,
        directory_ids=["id"],
        new_directories=[],
        checkpoints=[],
        renames=[],
        moved=[MovedReplicas(uuid_to_text(TOPIC_ID), index, {0: 1}) for index in range(partitions)],
        epochs={0: Epochs(20, 10), 1: Epochs(40, 40)},
        known={1: KnownBroker(40, "new", "", 40, 40, log_dirs=["new"])},
        removed=[2],
    )


class _Store(InMemoryStore):
    """Counts transactions; before one of them another broker of the cluster changes something."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.before: dict[int, Op] = {}

    async def txn(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        self.sizes.append(len(then))
        other = self.before.get(len(self.sizes))
        if other is not None:
            await super().txn((), (other,))
        return await super().txn(when, then)


async def _filled(partitions: int) -> _Store:
    store = _Store()
    for index in range(partitions):
        ops = (
            Put(KEYS.assignment(TOPIC_ID, index), encode(Assignment([1, 2]))),
            Put(KEYS.partition_state(TOPIC_ID, index), encode(PartitionState(1, 5, {1: 20, 2: 9}, 7))),
        )
        await InMemoryStore.txn(store, (), ops)
    for node_id in (1, 2001):
        await InMemoryStore.txn(store, (), (Put(KEYS.broker_known(node_id), encode(KnownBroker(20, "id", "", 20))),))
    return store


async def _state(store: InMemoryStore, index: int) -> tuple[list[int], PartitionState]:
    assigned, _ = await read_key(store, KEYS.assignment(TOPIC_ID, index))
    stored, _ = await read_key(store, KEYS.partition_state(TOPIC_ID, index))
    assert assigned is not None
    assert stored is not None
    return decode_assignment(assigned.value).replicas, decode_partition_state(stored.value)


async def test_as_many_partitions_in_a_transaction_as_the_store_allows() -> None:
    store = await _filled(150)

    await change_store(_plan(150), store, KEYS)

    assert store.sizes == [1, 128, 128, 44, 1]
    for index in range(150):
        assert await _state(store, index) == ([1001, 2], PartitionState(1001, 6, {1001: 40, 2: 9}, 8))
    known, _ = await read_key(store, KEYS.broker_known(1001))
    assert known is not None
    assert decode_known(known.value).log_dirs == ["new"]
    assert (await read_key(store, KEYS.broker_known(2001)))[0] is None


async def test_a_second_time_nothing_changes() -> None:
    store = await _filled(3)
    await change_store(_plan(3), store, KEYS)
    before = await store.range(b"")

    await change_store(_plan(3), store, KEYS)

    assert await store.range(b"") == before


async def test_what_another_broker_changed_meanwhile_is_kept() -> None:
    store = await _filled(3)
    led = PartitionState(2, 6, {2: 9}, 8, elr={1: 20})
    store.before[2] = Put(KEYS.partition_state(TOPIC_ID, 1), encode(led))

    await change_store(_plan(3), store, KEYS)

    assert await _state(store, 1) == ([1001, 2], PartitionState(2, 6, {2: 9}, 9, elr={1001: 40}))
    assert (await _state(store, 0))[1].leader == 1001


async def test_a_topic_that_is_deleted_meanwhile_stays_deleted() -> None:
    store = await _filled(3)
    store.before[2] = DeletePrefix(KEYS.topic(TOPIC_ID))

    await change_store(_plan(3), store, KEYS)

    assert (await store.range(KEYS.topics))[0] == []

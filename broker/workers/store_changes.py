"""The part of a plan that changes the metadata store: first `known/`, then the partitions, then removed workers.

| key | change |
|---|---|
| `known/` of a worker that receives partitions | its directories; the whole record, if it is new |
| assignment | the new worker is in the place of the old one, also among `adding` and `removing` |
| state | the same for leader, ISR and ELR; a new leader leads in the next epoch |
| `known/` of a removed worker | deleted, when no partition names it any more |

An entry of an in-sync set counts if its broker has lost nothing since (`leaders/leadership.py`). The new entry counts
if the old one did: the logs are the same. Every transaction compares what it was computed from, and leaves out what has
moved, so that all of it may be repeated, also while other machines of the cluster change other things.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from odradek.broker.config.workers import node_id
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import KV, Cmp, Delete, MetadataStore, Op, Put, read_key, still, unchanged
from odradek.broker.metadata.values import (
    Assignment,
    PartitionState,
    decode_assignment,
    decode_known,
    decode_partition_state,
    encode,
)
from odradek.broker.workers.plan import Epochs, MovedReplicas, Plan
from odradek.protocol.uuids import uuid_from_text

_KEYS_EACH = 2  # a partition's assignment and state


class NewBroker(NamedTuple):
    """The broker that takes over a replica, with its epochs and those of the former one."""

    node_id: int
    epochs: Epochs
    former: Epochs

    def epoch_in_sync(self, epoch: int) -> int:
        """Return the entry of an in-sync set in place of the former broker's `epoch`."""
        if epoch >= self.former.intact_since:
            return self.epochs.last
        return min(epoch, self.epochs.intact_since - 1)  # it has lost records since: that stays so


def moved_assignment(assignment: Assignment, moves: Mapping[int, NewBroker]) -> Assignment:
    """Return the assignment after the moves, which are by the former broker."""

    def moved(brokers: list[int]) -> list[int]:
        return [moves[each].node_id if each in moves else each for each in brokers]

    return Assignment(moved(assignment.replicas), moved(assignment.adding), moved(assignment.removing))


def moved_state(state: PartitionState, moves: Mapping[int, NewBroker]) -> PartitionState:
    """Return the state after the moves, which are by the former broker."""

    def moved(epochs: dict[int, int]) -> dict[int, int]:
        found = ((moves.get(broker), broker, epoch) for broker, epoch in epochs.items())
        return {
            (broker if new is None else new.node_id): (epoch if new is None else new.epoch_in_sync(epoch))
            for new, broker, epoch in found
        }

    leader = moves.get(state.leader)
    return msgspec.structs.replace(
        state,
        leader=state.leader if leader is None else leader.node_id,
        leader_epoch=state.leader_epoch + (leader is not None),
        isr=moved(state.isr),
        elr=moved(state.elr),
        partition_epoch=state.partition_epoch + 1,
    )


async def change_store(plan: Plan, store: MetadataStore, keys: Keys) -> None:
    """Make the changes of the module. Raises `StoreError`."""
    await _put_known(plan, store, keys)
    moving: Sequence[MovedReplicas] = plan.moved
    while moving:
        moving = await _move(moving, plan, store, keys)
    for worker in plan.removed:
        key = keys.broker_known(node_id(plan.node_id, worker))
        while (kv := (await read_key(store, key))[0]) is not None:
            await commit(store, (unchanged(kv),), (Delete(key),))


async def _put_known(plan: Plan, store: MetadataStore, keys: Keys) -> None:
    for worker, known in plan.known.items():
        key = keys.broker_known(node_id(plan.node_id, worker))
        is_done = False
        while not is_done:
            kv, _ = await read_key(store, key)
            is_done = kv is not None and decode_known(kv.value) == known
            if not is_done:
                put = Put(key, encode(known, b"" if kv is None else kv.value))
                is_done = (await commit(store, (still(key, 0 if kv is None else kv.mod_revision),), (put,))).ok


async def _move(
    moving: Sequence[MovedReplicas], plan: Plan, store: MetadataStore, keys: Keys
) -> Sequence[MovedReplicas]:
    """Move those that have not moved; return those that others changed meanwhile."""
    kvs = {kv.key: kv for kv in (await store.range(keys.topics))[0]}
    pending = [(each, change) for each in moving if (change := _change(each, plan, keys, kvs)) is not None]
    again: list[MovedReplicas] = []
    size = store.max_operations // _KEYS_EACH
    for batch in (pending[start : start + size] for start in range(0, len(pending), size)):
        when = [comparison for _, change in batch for comparison in change.when]
        then = [op for _, change in batch for op in change.then]
        if not (await commit(store, when, then)).ok:
            again += [each for each, _ in batch]
    return again


class _Change(NamedTuple):
    """The change of one partition: what it compares, and what it writes."""

    when: tuple[Cmp, ...]
    then: tuple[Op, ...]


def _change(replicas: MovedReplicas, plan: Plan, keys: Keys, kvs: Mapping[bytes, KV]) -> _Change | None:
    """Return the change of a partition, None if it has moved already, or its topic is deleted."""
    topic_id = uuid_from_text(replicas.topic_id)
    assigned = kvs.get(keys.assignment(topic_id, replicas.partition))
    stored = kvs.get(keys.partition_state(topic_id, replicas.partition))
    if assigned is None or stored is None:
        return None
    assignment = decode_assignment(assigned.value)
    moves = {old: new for old, new in _moves(replicas, plan) if old in assignment.replicas}
    if not moves:
        return None
    state = moved_state(decode_partition_state(stored.value), moves)
    return _Change(
        (unchanged(assigned), unchanged(stored)),
        (
            Put(assigned.key, encode(moved_assignment(assignment, moves), assigned.value)),
            Put(stored.key, encode(state, stored.value)),
        ),
    )


def _moves(replicas: MovedReplicas, plan: Plan) -> Iterator[tuple[int, NewBroker]]:
    for old, new in replicas.workers.items():
        moved = NewBroker(node_id(plan.node_id, new), plan.epochs[new], plan.epochs[old])
        yield node_id(plan.node_id, old), moved

"""The metadata of a run as the store has them at each moment, and the rules that every change of them must keep.

| rule | of a change of a partition's state |
|---|---|
| epochs never go back | leader epoch and partition epoch |
| one writer for each epoch | a leader epoch has one leader for ever |
| clean elections | a new leader was in the ISR before, or eligible, and has lost nothing since, unless all have |
| the leader counts every member | the committed ISR is inside the maximal ISR of the broker that leads that epoch |
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, Batch
from odradek.broker.metadata.values import (
    BrokerRegistration,
    PartitionState,
    decode_controller,
    decode_partition_state,
    decode_registration,
    decode_topic,
)
from odradek.protocol.uuids import uuid_from_text
from tests.simulation.history import Partition


class Registered:
    """A registration, with the broker epoch that its key has."""

    def __init__(self, epoch: int, value: BrokerRegistration) -> None:
        self.epoch = epoch
        self.value = value

    @property
    def intact_since(self) -> int:
        return self.value.intact_since or self.epoch


class StoredState:
    """`maximal_isr(node, partition, epoch)` returns the maximal ISR of a broker that leads in that epoch, else None."""

    def __init__(
        self, fail: Callable[[str], None], maximal_isr: Callable[[int, Partition, int], set[int] | None]
    ) -> None:
        self.partitions: dict[Partition, PartitionState] = {}
        self.topics: dict[str, bytes] = {}
        self.brokers: dict[int, Registered] = {}
        self.controller = -1
        self.leader_changes = 0
        self._keys = Keys()
        self._fail = fail
        self._maximal_isr = maximal_isr
        self._leaders: dict[tuple[Partition, int], int] = {}

    def apply(self, batch: Batch) -> None:
        """Apply one revision."""
        keys = self._keys
        for key, kv in batch.changes:
            if key == keys.controller:
                self.controller = -1 if kv is None else decode_controller(kv.value).broker
            elif key.startswith(keys.broker_ids):
                self._broker(int(key[len(keys.broker_ids) :]), kv)
            elif key.startswith(keys.topic_names):
                self._topic(key[len(keys.topic_names) :].decode(), kv)
            elif key.startswith(keys.topics) and b"/p/" in key:
                topic_id, _, index = key[len(keys.topics) :].partition(b"/p/")
                self._partition((uuid_from_text(topic_id.decode()), int(index)), kv)

    def _broker(self, node_id: int, kv: KV | None) -> None:
        if kv is None:
            self.brokers.pop(node_id, None)
        else:
            self.brokers[node_id] = Registered(kv.create_revision, decode_registration(kv.value))

    def _topic(self, name: str, kv: KV | None) -> None:
        if kv is None:
            self.topics.pop(name, None)
        else:
            self.topics[name] = uuid_from_text(decode_topic(kv.value).id)

    def _partition(self, partition: Partition, kv: KV | None) -> None:
        before = self.partitions.get(partition)
        if kv is None:
            self.partitions.pop(partition, None)
            return
        state = self.partitions[partition] = decode_partition_state(kv.value)
        name = f"{partition[0].hex()[:6]}-{partition[1]}"
        if state.leader >= 0:
            leader = self._leaders.setdefault((partition, state.leader_epoch), state.leader)
            if leader != state.leader:
                self._fail(f"{name}: epoch {state.leader_epoch} is led by {leader} and by {state.leader}")
        if before is not None:
            self._check_change(name, before, state)
        maximal = self._maximal_isr(state.leader, partition, state.leader_epoch)
        if maximal is not None and not state.isr.keys() <= maximal:
            self._fail(f"{name}: {sorted(state.isr)} are in sync, but leader {state.leader} counts {sorted(maximal)}")

    def _check_change(self, name: str, before: PartitionState, state: PartitionState) -> None:
        if state.leader_epoch < before.leader_epoch or state.partition_epoch <= before.partition_epoch:
            self._fail(f"{name}: {state} replaces {before}")
        if state.leader < 0 or state.leader_epoch == before.leader_epoch:
            return
        self.leader_changes += 1
        candidates = {**before.elr, **before.isr}
        if state.leader not in candidates:
            self._fail(f"{name}: {state.leader} was elected, in sync were {sorted(before.isr)}")
        elif self._has_lost(state.leader, candidates) and not all(
            self._has_lost(each, candidates) for each in candidates
        ):
            self._fail(f"{name}: {state.leader} was elected, but has lost records since it was in sync")

    def _has_lost(self, node_id: int, candidates: dict[int, int]) -> bool:
        """Return whether a registered broker has lost records since it was found in sync."""
        registered = self.brokers.get(node_id)
        return registered is not None and registered.intact_since > candidates[node_id]

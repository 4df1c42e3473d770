"""The operations that make the metadata those of a snapshot: every key is as it was, but for these.

| keys | stay as they are now, because |
|---|---|
| cluster, controller, registrations of brokers | they are of the running process |
| the next producer id | an id must never be given to two producers |
| leader and epoch of a partition that exists now, too | the partition is led in them |
| records of deleted topics | the logs of topics that are not in the snapshot are deleted by them |

A partition that was deleted since comes back under its leader and the registration of today, in a later leader epoch if
the broker has started since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from odradek.broker.metadata.keys import TOPIC_ID_LENGTH, Keys
from odradek.broker.metadata.store.store import KV, Delete, Op, Put
from odradek.broker.metadata.values import (
    DeletedTopic,
    PartitionState,
    decode_partition_state,
    decode_topic,
    encode,
)


class MetadataCopy:
    """The keys of a snapshot: what a restore puts back. `topics` are the ids, as keys have them."""

    def __init__(self, keys: Keys, kvs: Iterable[KV]) -> None:
        self._keys = keys
        self.values = {kv.key: kv.value for kv in kvs if not self.stays(kv.key)}
        self.topics = _topics_in(keys, self.values)

    def stays(self, key: bytes) -> bool:
        """Whether a key is left as it is by a restore."""
        keys = self._keys
        return key in (keys.cluster, keys.adopting, keys.controller, keys.next_producer_id) or key.startswith(
            (keys.broker_ids, keys.brokers_known)
        )

    def operations(self, now: Sequence[KV], node_id: int, broker_epoch: int, now_ms: int) -> list[Op]:
        """Return the operations on the keys of `now`, none for a key that is right already."""
        present = {kv.key: kv.value for kv in now if not self.stays(kv.key)}
        wanted = self._wanted(present, node_id, broker_epoch) | self._deletions(present, now_ms)
        operations: list[Op] = [Put(key, value) for key, value in wanted.items() if present.get(key) != value]
        return operations + [Delete(key) for key in present if key not in wanted]

    def _wanted(self, present: Mapping[bytes, bytes], node_id: int, broker_epoch: int) -> dict[bytes, bytes]:
        latest = max(
            (decode_partition_state(value).leader_epoch for key, value in present.items() if self._is_state(key)),
            default=0,
        )
        wanted = {}
        for key, value in self.values.items():
            if self._is_state(key):
                value = present.get(key) or _led(value, node_id, broker_epoch, latest)
            if not key.startswith(self._keys.topics_deleted):
                wanted[key] = value
        return wanted

    def _deletions(self, present: Mapping[bytes, bytes], now_ms: int) -> dict[bytes, bytes]:
        """The records of deleted topics, with those that a restore deletes."""
        start = self._keys.topics_deleted
        records = {key: value for key, value in (self.values | dict(present)).items() if key.startswith(start)}
        for topic_id, name in _topics_in(self._keys, present).items():
            records.setdefault(start + topic_id, encode(DeletedTopic(name, now_ms)))
        for topic_id in self.topics:
            records.pop(start + topic_id, None)
        return records

    def _is_state(self, key: bytes) -> bool:
        """Whether a key is that of the leader and the ISR of a partition."""
        start = len(self._keys.topics) + TOPIC_ID_LENGTH
        return key.startswith(self._keys.topics) and key[start : start + 3] == b"/p/"


def _topics_in(keys: Keys, values: Mapping[bytes, bytes]) -> dict[bytes, str]:
    """The names of the topics by id, as keys have them."""
    start = keys.topic_names
    return {
        decode_topic(value).id.encode(): key[len(start) :].decode()
        for key, value in values.items()
        if key.startswith(start)
    }


def _led(value: bytes, node_id: int, broker_epoch: int, latest_leader_epoch: int) -> bytes:
    """The state of a partition that is led by this broker in its present registration."""
    before = decode_partition_state(value)
    isr = {node_id: broker_epoch}
    if before.leader == node_id and before.isr == isr:
        return value
    leader_epoch = max(before.leader_epoch + 1, latest_leader_epoch)
    state: PartitionState = msgspec.structs.replace(
        before, leader=node_id, leader_epoch=leader_epoch, isr=isr, partition_epoch=before.partition_epoch + 1
    )
    return encode(state, value)

"""The metadata of a cluster at one revision of the store, as the moves of partitions need them."""

from __future__ import annotations

from typing import NamedTuple

from odradek.broker.metadata.cluster_record import StoreState
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import load_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, MetadataStore
from odradek.broker.metadata.values import ClusterRecord, KnownBroker, decode_cluster


class Stored(NamedTuple):
    """See the module. `cluster` is None in a store that no broker has used."""

    cluster: ClusterRecord | None
    image: MetadataImage

    def known(self, node_id: int) -> KnownBroker | None:
        return self.image.known.get(node_id)

    def state_of(self, node_id: int) -> StoreState:
        """Return what decides whether a broker may join."""
        known = self.known(node_id)
        return StoreState(self.cluster, self.image.revision, 0 if known is None else known.last_epoch)


def stored_from(keys: Keys, kvs: list[KV], revision: int) -> Stored:
    """Return what these keys say. Raises `StoreError` for a value that cannot be read."""
    cluster = next((decode_cluster(kv.value) for kv in kvs if kv.key == keys.cluster), None)
    return Stored(cluster, load_image(keys, MetadataImage(), kvs, revision).after)


async def read_stored(store: MetadataStore, keys: Keys) -> Stored:
    """Read everything. Raises `StoreError`."""
    return stored_from(keys, *await store.range(keys.prefix + b"/"))

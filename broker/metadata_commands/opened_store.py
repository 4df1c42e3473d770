"""The metadata store that a configuration names: in etcd, or the file of a broker alone, which is read only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import StoreState
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import load_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.opening import shared_store
from odradek.broker.metadata.store.sqlite import FILE_NAME, read_file
from odradek.broker.metadata.store.store import KV, MetadataStore
from odradek.broker.metadata.values import ClusterRecord, decode_cluster, decode_known


class StoredMetadata(NamedTuple):
    """All keys of a cluster at one revision of the store; `place`: where it is, for people."""

    place: str
    keys: Keys
    kvs: list[KV]
    revision: int

    @property
    def cluster(self) -> ClusterRecord | None:
        return next((decode_cluster(kv.value) for kv in self.kvs if kv.key == self.keys.cluster), None)

    def state_of(self, node_id: int) -> StoreState:
        """Return what decides whether a broker may join."""
        key = self.keys.broker_known(node_id)
        epochs = [decode_known(kv.value).last_epoch for kv in self.kvs if kv.key == key]
        return StoreState(self.cluster, self.revision, *(epochs or [0]))

    def image(self) -> MetadataImage:
        """Return the image that a broker would have. Raises `StoreError` for a value that cannot be read."""
        return load_image(self.keys, MetadataImage(), self.kvs, self.revision).after


async def read_metadata(config: BrokerConfig, clock: Clock) -> StoredMetadata:
    """Read everything, also beside a running broker. Raises `StoreError`."""
    keys = Keys(config.metadata_etcd_namespace)
    if not config.metadata_etcd_endpoints:
        path = Path(config.log_dirs[0]) / FILE_NAME
        kvs, revision = read_file(path)
        return StoredMetadata(str(path), keys, [kv for kv in kvs if kv.key.startswith(keys.prefix)], revision)
    async with shared_store(config, clock) as store:
        return await read_shared(config, store)


async def read_shared(config: BrokerConfig, store: MetadataStore) -> StoredMetadata:
    """Read everything from a store in etcd. Raises `StoreError`."""
    keys = Keys(config.metadata_etcd_namespace)
    kvs, revision = await store.range(keys.prefix + b"/")
    return StoredMetadata(f"etcd at {', '.join(config.metadata_etcd_endpoints)}", keys, kvs, revision)

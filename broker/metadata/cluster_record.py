"""The record of the cluster in the metadata store: the id that every log directory of the cluster has.

A broker alone has its metadata in its log directory, so its store takes the directory's id. In a store that several
brokers share, the record decides:

| the store | the log directory | then |
|---|---|---|
| has a cluster | is new | it takes the cluster's id |
| has a cluster | is of that one | the broker joins |
| has a cluster | is of another one | refused when the directory is opened |
| has none | is new | a cluster begins |
| has none | is of a cluster | refused: the store may have been emptied, and its topics are unknown |
"""

from __future__ import annotations

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import MetadataStore, Op, Put, absent
from odradek.broker.metadata.values import ClusterRecord, decode_cluster, encode


async def find_cluster(store: MetadataStore, keys: Keys) -> ClusterRecord | None:
    """Return the record, None if the store has none. Raises `StoreError`."""
    found, _ = await store.range(keys.cluster)
    return next((decode_cluster(kv.value) for kv in found if kv.key == keys.cluster), None)


async def begin_cluster(store: MetadataStore, keys: Keys, record: ClusterRecord, *, adopts: bool) -> ClusterRecord:
    """Store `record` unless there is one, and return the one that is stored; with `adopts`, `adoption` is due.

    Raises `StoreError`.
    """
    new: list[Op] = [Put(keys.cluster, encode(record))]
    if adopts:
        new.append(Put(keys.adopting, b""))
    await commit(store, (absent(keys.cluster),), new)
    return await find_cluster(store, keys) or record


async def cluster_to_join(store: MetadataStore, keys: Keys, stored_id: str | None, new: ClusterRecord) -> str:
    """Return the id of the cluster in a shared store, which begins as `new` if need be.

    `stored_id`: the cluster of this broker's log directories, None if they are new. Raises `RegistrationError`,
    `StoreError`.
    """
    found = await find_cluster(store, keys)
    if found is None and stored_id is not None:
        raise RegistrationError(
            f"the metadata store has no cluster under {keys.prefix.decode()}, but the log directories are of cluster"
            f" {stored_id}: restore a backup of the store, or correct metadata.etcd.endpoints and"
            " metadata.etcd.namespace; to begin a new cluster, use empty log directories"
        )
    if found is None:
        found = await begin_cluster(store, keys, new, adopts=False)
    return found.id

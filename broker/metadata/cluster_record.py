"""The record of the cluster in the metadata store: the id that every log directory of the cluster has.

A broker alone has its metadata in its log directory, so its store takes the directory's id. In a store that several
brokers share, the record decides:

| the store | the log directories | then |
|---|---|---|
| has a cluster | are new | they take the cluster's id |
| has a cluster | are of that one | the broker joins |
| has a cluster, at a lower revision than | have seen | refused: an older copy, whose epochs would be given out again |
| has an earlier epoch of the broker than | have seen | the same |
| has a cluster | are of another one | refused |
| has a cluster of a later version | any | refused |
| has none | are new | a cluster begins |
| has none | are of a cluster | refused: the store may have been emptied, and its topics are unknown |

Each refusal names the command with which an operator resolves it; `odradek.broker.metadata_commands` has them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import MetadataStore, Op, Put, absent, read_key
from odradek.broker.metadata.values import FEATURE_LEVEL, ClusterRecord, decode_cluster, decode_known, encode

_WHERE: Final = "metadata.etcd.endpoints and metadata.etcd.namespace"


class DirectoriesState(NamedTuple):
    """What the log directories of a broker say before they are opened.

    `cluster_id`: None if they are new; `revision`: the highest of the metadata store that they have seen;
    `broker_epoch`: of their broker then.
    """

    cluster_id: str | None
    revision: int = 0
    broker_epoch: int = 0


class StoreState(NamedTuple):
    """What the metadata store says; `broker_epoch`: the last one of the broker, 0 if the store does not know it."""

    cluster: ClusterRecord | None
    revision: int
    broker_epoch: int


async def find_cluster(store: MetadataStore, keys: Keys) -> ClusterRecord | None:
    """Return the record, None if the store has none. Raises `StoreError`."""
    kv, _ = await read_key(store, keys.cluster)
    return None if kv is None else decode_cluster(kv.value)


async def begin_cluster(store: MetadataStore, keys: Keys, record: ClusterRecord, *, adopts: bool) -> ClusterRecord:
    """Store `record` unless there is one, and return the one that is stored; with `adopts`, `adoption` is due.

    Raises `StoreError`.
    """
    new: list[Op] = [Put(keys.cluster, encode(record))]
    if adopts:
        new.append(Put(keys.adopting, b""))
    await commit(store, (absent(keys.cluster),), new)
    return await find_cluster(store, keys) or record


async def cluster_to_join(
    store: MetadataStore, keys: Keys, node_id: int, directories: DirectoriesState, new: ClusterRecord
) -> str:
    """Return the id of the cluster in a shared store, which begins as `new` if need be.

    Raises `RegistrationError`, `StoreError`.
    """
    state = await read_state(store, keys, node_id)
    refusal = why_refused(state, directories, keys)
    if refusal is not None:
        raise RegistrationError(refusal)
    return (state.cluster or await begin_cluster(store, keys, new, adopts=False)).id


async def read_state(store: MetadataStore, keys: Keys, node_id: int) -> StoreState:
    """Read what decides whether broker `node_id` may join. Raises `StoreError`."""
    known, _ = await read_key(store, keys.broker_known(node_id))
    kv, revision = await read_key(store, keys.cluster)
    cluster = None if kv is None else decode_cluster(kv.value)
    return StoreState(cluster, revision, 0 if known is None else decode_known(known.value).last_epoch)


def why_refused(store: StoreState, directories: DirectoriesState, keys: Keys) -> str | None:
    """Return why a broker with these log directories may not join the cluster in a store, None if it may."""
    found = store.cluster
    if found is not None and found.feature_level > FEATURE_LEVEL:
        level = found.feature_level
        return f"the cluster needs feature level {level}, this version has {FEATURE_LEVEL}: install a newer one"
    if directories.cluster_id is None:
        return None
    if found is None:
        return (
            f"the metadata store has no cluster under {keys.prefix.decode()}, but the log directories are of cluster"
            f" {directories.cluster_id}: correct {_WHERE}, or restore a backup of etcd. If there is none,"
            " `odradek metadata create-cluster` makes the cluster again, without its topics"
        )
    if found.id != directories.cluster_id:
        return (
            f"the metadata store has cluster {found.id}, but the log directories are of cluster"
            f" {directories.cluster_id}: correct {_WHERE}, or log.dirs. `odradek metadata show` lists its topics"
        )
    if store.revision < directories.revision:
        return older_store(f"is at revision {store.revision}, but the log directories have seen {directories.revision}")
    if 0 < store.broker_epoch < directories.broker_epoch:
        return older_store(
            f"has epoch {store.broker_epoch} of this broker, but the log directories had {directories.broker_epoch}"
        )
    return None


def older_store(evidence: str) -> str:
    """Return the refusal of a store that is an older copy."""
    return (
        f"the metadata store {evidence}: it is an older copy. Correct {_WHERE}, or restore the newest backup of etcd;"
        " if this is the newest, `odradek metadata accept-backup` lists what it lacks, and makes this broker accept it"
    )

"""The record of the cluster in the metadata store: the id that every log directory of the cluster has.

A broker alone has its metadata in its log directory, so its store takes the directory's id. In a store that several
brokers share, the record decides:

| the store | the log directories | then |
|---|---|---|
| has a cluster | are new | they take the cluster's id |
| has a cluster | are of that one | the broker joins |
| has a cluster, at a lower revision than | have seen | refused: an older copy, whose epochs would be given out again |
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
from odradek.broker.metadata.values import FEATURE_LEVEL, ClusterRecord, decode_cluster, encode

_WHERE: Final = "metadata.etcd.endpoints and metadata.etcd.namespace"


class DirectoriesState(NamedTuple):
    """What the log directories of a broker say before they are opened.

    `cluster_id`: None if they are new; `revision`: the highest of the metadata store that they have seen.
    """

    cluster_id: str | None
    revision: int = 0


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


async def cluster_to_join(store: MetadataStore, keys: Keys, directories: DirectoriesState, new: ClusterRecord) -> str:
    """Return the id of the cluster in a shared store, which begins as `new` if need be.

    Raises `RegistrationError`, `StoreError`.
    """
    kv, revision = await read_key(store, keys.cluster)
    found = None if kv is None else decode_cluster(kv.value)
    refusal = why_refused(found, revision, directories, keys)
    if refusal is not None:
        raise RegistrationError(refusal)
    return (found or await begin_cluster(store, keys, new, adopts=False)).id


def why_refused(found: ClusterRecord | None, revision: int, directories: DirectoriesState, keys: Keys) -> str | None:
    """Return why log directories may not join the cluster `found` in a store at `revision`, None if they may."""
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
    if revision < directories.revision:
        return (
            f"the metadata store is at revision {revision}, but the log directories have seen {directories.revision}:"
            f" it is an older copy. Correct {_WHERE}, or restore the newest backup of etcd; if this is the newest,"
            " `odradek metadata accept-backup` lists what it lacks, and makes this broker accept it"
        )
    return None

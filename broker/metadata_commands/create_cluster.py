"""`metadata create-cluster`: put the record of the log directories' cluster into a store that has lost it.

| the store | the log directories | then |
|---|---|---|
| has no record | are of a cluster | the record is put, with their id |
| has the record | are of that cluster | nothing to do |
| has the record of another cluster | any | refused: the store is another cluster's |
| any | are new | refused: their broker begins a cluster by itself |

Topics that the store still has are served again. Others are unknown: their logs stay on disk, set aside as `-stray`.
With `--adopt-topics` this broker makes topics of the logs in its directories when it starts, as it does with those of
Apache Kafka (`metadata.adoption`): under their ids, each with one replica, here.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.adoption import adopter
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import MetadataStore, Op, Put, StoreFailedError, absent
from odradek.broker.metadata.values import ClusterRecord, encode
from odradek.broker.metadata_commands.directories import compare, counted, local_logs, locked, state_of, store_revision
from odradek.broker.metadata_commands.opened_store import StoredMetadata, read_shared


async def create_cluster(
    config: BrokerConfig,
    store: MetadataStore,
    clock: Clock,
    say: Callable[[str], None],
    *,
    adopts_topics: bool,
    is_confirmed: bool,
) -> bool | None:
    """Say what the record changes, and put it if that `is_confirmed`. Raises `StoreError` and as `directories`.

    Returns whether it was put, None if there is nothing to do.
    """
    cluster_id = state_of(config, clock).cluster_id
    if cluster_id is None:
        raise StoreFailedError("the log directories are new: start their broker, which begins a cluster by itself")
    with locked(config.log_dirs):
        metadata = await read_shared(config, store)
        found = metadata.cluster
        if found is not None and found.id != cluster_id:
            raise StoreFailedError(
                f"{metadata.place} has cluster {found.id} under {metadata.keys.prefix.decode()}, the log directories"
                f" are of cluster {cluster_id}: correct metadata.etcd.endpoints and metadata.etcd.namespace"
            )
        if found is not None:
            say(f"{metadata.place} has cluster {cluster_id} already: there is nothing to do")
            return None
        _explain(config, metadata, cluster_id, say, adopts_topics=adopts_topics)
        if not is_confirmed:
            return False
        new: list[Op] = [Put(metadata.keys.cluster, encode(ClusterRecord(cluster_id, clock.time_ms())))]
        if adopts_topics:
            new.append(Put(metadata.keys.adopting, adopter(config.node_id)))
        result = await commit(store, (absent(metadata.keys.cluster),), new)
        if not result.ok:
            raise StoreFailedError("somebody else has put a record meanwhile: look again")
        store_revision(config.log_dirs, result.revision)
        return True


def _explain(
    config: BrokerConfig, metadata: StoredMetadata, cluster_id: str, say: Callable[[str], None], *, adopts_topics: bool
) -> None:
    image = metadata.image()
    unknown = compare(local_logs(config.log_dirs), image, config.node_id).unknown
    say(f"{metadata.place} has no cluster under {metadata.keys.prefix.decode()}.")
    say(f"This makes it cluster {cluster_id} again, with what it has: {counted('topic', list(image.topics))}.")
    say(f"These log directories have {counted('log', unknown)} of topics that it does not have.")
    if not unknown:
        return
    if adopts_topics:
        say(f"Broker {config.node_id} makes topics of them when it starts: one replica each, default properties.")
        say("Set log.retention.ms=-1 before that, or records older than a week are deleted, of compacted topics too.")
        say("Start it first, and alone. Records that it does not have, because it was a follower, are not served.")
    else:
        say("Their records stay on disk, but are not served: brokers set their directories aside, as …-stray.")
        say("--adopt-topics makes topics of them instead. Decide before the broker starts.")

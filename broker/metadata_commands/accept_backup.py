"""`metadata accept-backup`: accept a store that is older than the log directories, because etcd was restored.

```
stop all brokers ─► restore etcd ─► accept-backup with the configuration of each broker ─► start the brokers
```

What came after the backup is unknown to the store. Two things would damage logs, so they are corrected in the store:

| in the backup | then |
|---|---|
| a leader epoch below the latest in a log | it is raised to that, without a leader: the next one has a new epoch |
| this broker as cleanly stopped, although it was not | its last stop counts as unclean |

Then the log directories take the store's revision, so that the broker starts. If the command is interrupted, the
directories are still refused, and it can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.metadata.cluster_record import why_refused
from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.leadership import NO_LEADER
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import Cmp, MetadataStore, Op, Put, StoreFailedError, read_key, still
from odradek.broker.metadata.values import decode_known, decode_partition_state, encode
from odradek.broker.metadata_commands.directories import (
    Comparison,
    LocalLog,
    compare,
    counted,
    local_logs,
    locked,
    state_of,
    store_revision,
    was_stopped_cleanly,
)
from odradek.broker.metadata_commands.opened_store import read_shared

_STATES_PER_TRANSACTION = 100


async def accept_backup(
    config: BrokerConfig, store: MetadataStore, clock: Clock, say: Callable[[str], None], *, is_confirmed: bool
) -> bool | None:
    """Say what the store lacks, and accept it if that `is_confirmed`. Raises `StoreError` and as `directories`.

    Returns whether it was accepted, None if there is nothing to do.
    """
    state = state_of(config, clock)
    with locked(config.log_dirs):
        metadata = await read_shared(config, store)
        cluster = metadata.cluster
        if cluster is None or cluster.id != state.cluster_id:
            owner = "no cluster" if cluster is None else f"cluster {cluster.id}"
            raise StoreFailedError(
                f"{metadata.place} has {owner} under {metadata.keys.prefix.decode()}, but the log directories are of"
                f" cluster {state.cluster_id}: `odradek metadata show` has more"
            )
        image = metadata.image()
        comparison = compare(local_logs(config.log_dirs), image, config.node_id)
        if not comparison.ahead and why_refused(metadata.state_of(config.node_id), state, metadata.keys) is None:
            say(f"{metadata.place} is at revision {metadata.revision}, the log directories have seen {state.revision}.")
            say("The store is not older: there is nothing to do.")
            return None
        _explain(config, image, comparison, state.revision, say)
        if not is_confirmed:
            return False
        await _raise_epochs(store, metadata.keys, comparison.ahead)
        if not was_stopped_cleanly(config.log_dirs):
            await _forget_clean_stop(store, metadata.keys, config.node_id)
        _, revision = await store.range(metadata.keys.cluster)
        store_revision(config.log_dirs, revision)
        return True


def _explain(
    config: BrokerConfig, image: MetadataImage, comparison: Comparison, seen: int, say: Callable[[str], None]
) -> None:
    say(f"The store is at revision {image.revision}; the log directories of broker {config.node_id} have seen {seen}.")
    say("What was changed between the two is lost: topics, partitions, properties of topics and brokers.")
    if image.registered:
        say(f"Registered: brokers {', '.join(map(str, image.registered))}. Stop those that run, on every machine.")
    say(
        f"Created since: {counted('log', comparison.unknown)} here of topics that the store does not have."
        " Their records stay on disk, but are not served: brokers set their directories aside, as …-stray."
    )
    say(f"Deleted since, or moved: {counted('partition', comparison.missing)} that begin empty here.")
    say(f"Deleted before: {counted('log', comparison.deleted)} here that the broker removes, as it had to.")
    say(f"Led by others since: {counted('partition', comparison.ahead)} whose leader epoch is raised.")
    say(
        "Where the in-sync replicas have changed since, records may be cut off. To avoid that, start first the brokers"
        " that ran last."
    )


async def _raise_epochs(store: MetadataStore, keys: Keys, ahead: Sequence[LocalLog]) -> None:
    """Raise the leader epochs of the partitions to those of their logs; another broker may have raised them further."""
    remaining: Iterator[LocalLog] = iter(ahead)
    while batch := list(islice(remaining, _STATES_PER_TRANSACTION)):
        when: list[Cmp] = []
        then: list[Op] = []
        for log in batch:
            key = keys.partition_state(log.topic_id, log.partition)
            kv, _ = await read_key(store, key)
            if kv is None or (state := decode_partition_state(kv.value)).leader_epoch >= log.leader_epoch:
                continue
            raised = msgspec.structs.replace(
                state, leader=NO_LEADER, leader_epoch=log.leader_epoch, partition_epoch=state.partition_epoch + 1
            )
            when.append(still(key, kv.mod_revision))
            then.append(Put(key, encode(raised, kv.value)))
        if then and not (await commit(store, when, then)).ok:
            raise StoreFailedError("the store has changed meanwhile: stop all brokers, and repeat the command")


async def _forget_clean_stop(store: MetadataStore, keys: Keys, node_id: int) -> None:
    """Record that what the broker had may be lost: its clean stop in the backup was not its last one."""
    kv, _ = await read_key(store, keys.broker_known(node_id))
    if kv is None:
        return
    known = msgspec.structs.replace(decode_known(kv.value), clean_shutdown_epoch=0, boot_id="")
    put = Put(kv.key, encode(known, kv.value))
    if not (await commit(store, (still(kv.key, kv.mod_revision),), (put,))).ok:
        raise StoreFailedError("the store has changed meanwhile: stop all brokers, and repeat the command")

"""Changes of in-sync sets: proposed by the partition's leader, committed by compare-and-swap in the metadata store.

```
fetch of a replica ──► expand ─┐
lagging replicas ────► shrink ─┴─► propose ─► transaction ─┬─ applied ──► the leader takes the new state at once
                       (the maximal ISR counts from here)  ├─ refused ──► read the state: take it, or drop the proposal
                                                           └─ unknown ──► the identical transaction again
```

The transaction compares the revision of the partition's state, which it overwrites. For a replica that joins it also
compares the registration: the broker that has fetched still runs, with that broker epoch. Both comparisons, once false,
stay false. So a late or repeated delivery changes nothing, and a refusal is final: no earlier attempt can apply later.

A proposal counts in the maximal ISR until its outcome is known. After a refusal:

| stored state | meaning | here |
|---|---|---|
| unchanged | the registration of the replica that joins has changed | the proposal is dropped |
| changed, same leader epoch | an earlier attempt was applied, or the controller removed a replica | it is applied |
| changed, later leader epoch | this broker is deposed, perhaps by a proposed member | the proposal stays |
| missing | the topic is being deleted | the proposal stays |

While fewer replicas than min.insync.replicas are in sync, those that left are eligible leader replicas
(`metadata.leaders.leadership`).

An image answers a proposal as well: it may arrive first. A partition has one proposal at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.leadership import eligible_replicas
from odradek.broker.metadata.store.store import KV, Cmp, Op, Put, StoreError, TxnResult, still
from odradek.broker.metadata.values import PartitionState, decode_partition_state, encode
from odradek.broker.metrics.counts.metrics import Metrics
from odradek.broker.replication.isr import effective_min_insync
from odradek.broker.replication.partition import Partition
from odradek.broker.structured_logging import StructuredLogger
from odradek.broker.tasks import BackgroundTasks
from odradek.protocol.errors import KafkaError

_LOG = StructuredLogger(__name__)

RETRY_SECONDS = 0.5
"""The pause before a transaction with an unknown outcome is repeated."""


class IsrStore(Protocol):
    """The part of `Metadata` that runs the transactions."""

    async def commit(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        """Run a transaction. Raises KafkaError or StoreError if its outcome is unknown."""
        ...

    async def read(self, key: bytes) -> KV | None:
        """Read one key from the store, not from an image. Raises KafkaError or StoreError."""
        ...


class IsrChange(NamedTuple):
    """A proposed ISR: the transaction, and what it is based on."""

    isr: Mapping[int, int]
    leader_epoch: int
    state_revision: int
    when: tuple[Cmp, ...]
    put: Put


def isr_change(
    keys: Keys,
    topic_id: bytes,
    index: int,
    image: PartitionImage,
    isr: dict[int, int],
    joining: BrokerImage | None,
    min_insync: int,
) -> IsrChange:
    """Build the change of a partition's state in `image` to `isr`; `joining` is the broker that is new in it."""
    key = keys.partition_state(topic_id, index)
    before = decode_partition_state(image.state_value)
    # When all replicas are in sync, none has records any more that an unclean election lost.
    recovers = 0 if isr.keys() >= set(image.replicas) else before.rec
    elr = eligible_replicas(image, isr, min_insync)
    state = msgspec.structs.replace(before, isr=isr, partition_epoch=before.partition_epoch + 1, elr=elr, rec=recovers)
    when = [still(key, image.state_revision)]
    if joining is not None:
        when.append(Cmp(keys.broker_id(joining.node_id), joining.epoch, joining.revision))
    put = Put(key, encode(state, image.state_value))
    return IsrChange(isr, before.leader_epoch, image.state_revision, tuple(when), put)


def _is_held_up(partition: Partition) -> bool:
    """Return whether eligible leader replicas hold the high watermark, although enough replicas are in sync."""
    image = partition.image
    if not partition.is_leader or image is None or not image.eligible_leader_replicas:
        return False
    return len(partition.isr) >= effective_min_insync(partition.log.config.min_insync_replicas, len(partition.replicas))


class IsrChanges:
    """The proposals of one broker. `brokers` returns a registered broker of the newest image."""

    def __init__(
        self,
        store: IsrStore,
        keys: Keys,
        *,
        brokers: Callable[[int], BrokerImage | None],
        tasks: BackgroundTasks,
        metrics: Metrics,
    ) -> None:
        self._store = store
        self._keys = keys
        self._brokers = brokers
        self._tasks = tasks
        self._metrics = metrics

    def expand(self, partition: Partition, replica: int) -> None:
        """Propose a replica that may join: the receiver of `PartitionEvents.may_join`."""
        broker = self._brokers(replica)
        if broker is not None:
            self._propose(partition, {**partition.isr, replica: broker.epoch}, broker)

    def shrink(self, partitions: Iterable[Partition]) -> None:
        """Propose to remove the replicas that lag. Call it every half of replica.lag.time.max.ms.

        Also where enough replicas are in sync since min.insync.replicas was lowered: eligible leader replicas, which
        hold the high watermark, are forgotten.
        """
        for partition in partitions:
            lagging = partition.lagging_replicas()
            if lagging or _is_held_up(partition):
                isr = {replica: epoch for replica, epoch in partition.isr.items() if replica not in lagging}
                self._propose(partition, isr, None)

    def _propose(self, partition: Partition, isr: dict[int, int], joining: BrokerImage | None) -> None:
        image = partition.image
        if image is None or not image.state_value or partition.proposed_isr is not None or not partition.is_leader:
            return
        least = partition.log.config.min_insync_replicas
        change = isr_change(self._keys, partition.topic_id, partition.index, image, isr, joining, least)
        partition.propose_isr(change.isr)
        self._tasks.start("ISR change", self._run(partition, change))

    async def _run(self, partition: Partition, change: IsrChange) -> None:
        while partition.proposed_isr is change.isr:
            try:
                if await self._attempt(partition, change):
                    return
            except (KafkaError, StoreError) as error:
                self._metrics.failed_isr_updates += 1
                _LOG.warning("outcome of an ISR change unknown", partition=str(partition), error=str(error))
            await asyncio.sleep(RETRY_SECONDS)

    async def _attempt(self, partition: Partition, change: IsrChange) -> bool:
        """Run the transaction, and apply its outcome; return whether that is the end of the proposal."""
        result = await self._store.commit(change.when, (change.put,))
        if result.ok:
            self._take(partition, change, KV(change.put.key, change.put.value, 0, result.revision))
            return True
        stored = await self._store.read(change.put.key)
        if stored is not None and partition.proposed_isr is change.isr:
            if stored.mod_revision == change.state_revision:
                self._metrics.failed_isr_updates += 1
                partition.propose_isr(None)
            else:
                self._take(partition, change, stored)
        return True

    def _take(self, partition: Partition, change: IsrChange, stored: KV) -> None:
        """Apply a stored state of the same leader epoch to the partition, unless an image was faster."""
        state = decode_partition_state(stored.value)
        if stored.value == change.put.value:
            self._count(partition, change, state)
        if partition.proposed_isr is change.isr and state.leader_epoch == change.leader_epoch:
            assert partition.image is not None  # it has a proposal
            image = msgspec.structs.replace(
                partition.image,
                leader=state.leader,
                isr=state.isr,
                partition_epoch=state.partition_epoch,
                eligible_leader_replicas=state.elr,
                state_revision=stored.mod_revision,
                state_value=stored.value,
            )
            partition.apply(image)

    def _count(self, partition: Partition, change: IsrChange, state: PartitionState) -> None:
        if len(change.when) > 1:
            self._metrics.isr_expands += 1
        else:
            self._metrics.isr_shrinks += 1
        _LOG.info(
            "ISR changed",
            topic=partition.topic,
            partition=partition.index,
            isr=sorted(state.isr),
            epoch=state.leader_epoch,
        )

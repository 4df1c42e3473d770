"""The controller: one broker of the cluster, whichever put the key first, that reacts to brokers coming and going.

```
no controller  ── put /controller, if absent ──►  controller (epoch = the key's create revision)
controller     ── its session ends: the key vanishes ──►  no controller
```

Every transaction of a controller compares that key's create revision with its own epoch: one that was deposed without
noticing cannot change anything. It acts on images only: each new one is looked through for partitions whose leader must
change. What a transaction changed, or why it failed, comes back as a newer image, so there is nothing to poll.

Administration (topics, configurations) is not the controller's: any broker does that by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from odradek.broker.metadata.image import BrokerImage, MetadataImage, TopicImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leadership import Decision, choose_leader
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import (
    Cmp,
    DeletePrefix,
    MetadataStore,
    Op,
    Put,
    Session,
    StoreError,
    TxnResult,
    absent,
    created_at,
    still,
)
from odradek.broker.metadata.values import ControllerRecord, encode
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

PARTITIONS_PER_TRANSACTION = 120
"""With the comparison of the controller's epoch this stays below the store's 128."""
_NAMED = 10
"""Partitions that one line of the log names."""


class _Election(NamedTuple):
    topic: TopicImage
    partition: int
    decision: Decision


class Controller:
    """This broker as a candidate and, while it is the one, as the controller.

    `image_changed` is told of every image; what has to be done is done by `run`, in a task of the owner.
    """

    def __init__(self, store: MetadataStore, keys: Keys, session: Session, node_id: int, incarnation: str) -> None:
        self._store = store
        self._keys = keys
        self._lease = session.lease
        self._record = ControllerRecord(node_id, incarnation)
        self._image: MetadataImage | None = None
        self._seen: MetadataImage | None = None
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._failure: StoreError | None = None
        self._answered = 0
        self.epoch = 0

    async def campaign(self) -> None:
        """Become the controller unless there is one."""
        put = Put(self._keys.controller, encode(self._record), self._lease)
        result = await self._commit((absent(self._keys.controller),), (put,))
        if result.ok:
            self.epoch = result.revision

    def image_changed(self, image: MetadataImage) -> None:
        self._image = image
        self._settled.clear()
        self._changed.set()

    async def settled(self) -> None:
        """Return when there is nothing left to do for the last image. Raises `StoreError` after `fail`."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def fail(self, error: StoreError) -> None:
        """There will be no other image, or nobody who acts on it."""
        self._failure = error
        self._settled.set()

    async def run(self) -> None:
        """Act on images until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            image = self._image
            if image is None:
                continue
            await self._act(image)
            # What the store answered comes as an image too; until then there may be more to do.
            if image is self._image and image.revision >= self._answered:
                self._settled.set()

    async def _act(self, image: MetadataImage) -> None:
        if image.controller_id < 0:
            await self.campaign()
        elif self.epoch and image.controller_epoch == self.epoch:
            first = self._seen is None
            changed = await self._elect(image)
            if first:
                await self._sweep(image)
            # If nothing was refused, the changes of this image are dealt with; a refusal means that a newer one comes.
            if changed:
                self._seen = image
        else:
            self._seen = None

    async def _elect(self, image: MetadataImage) -> bool:
        """Decide on every partition that may be concerned. Returns whether every decision was accepted."""
        elections = _elections(image, self._seen)
        accepted = True
        damaged: list[str] = []
        while batch := list(islice(elections, PARTITIONS_PER_TRANSACTION)):
            accepted = await self._write(batch) and accepted
            damaged += [f"{topic.name}-{index}" for topic, index, decision in batch if decision.may_have_lost]
        if damaged:
            # The only in-sync replica has restarted without a clean stop.
            named = ", ".join(damaged[:_NAMED])
            _LOG.warning("records may be lost", count=len(damaged), partitions=named)
        return accepted

    async def _write(self, elections: list[_Election]) -> bool:
        when: list[Cmp] = [created_at(self._keys.controller, self.epoch)]
        then = []
        for topic, index, decision in elections:
            partition = topic.partitions[index]
            key = self._keys.partition_state(topic.topic_id, index)
            when.append(still(key, partition.state_revision))
            then.append(Put(key, encode(decision.state, partition.state_value)))
        return (await self._commit(when, then)).ok

    async def _sweep(self, image: MetadataImage) -> None:
        """Delete what creations that never finished have left.

        A topic's first partition is written together with its name. So while that partition does not exist, the name
        has not appeared either, and a creation that is still under way finds out that its other partitions are gone.
        """
        for topic_id in image.uncovered.keys() - image.topics_by_id.keys():
            when = (
                created_at(self._keys.controller, self.epoch),
                absent(self._keys.partition_state(topic_id, 0)),
            )
            await self._commit(when, (DeletePrefix(self._keys.topic(topic_id)),))

    async def _commit(self, when: Sequence[Cmp], then: Sequence[Op]) -> TxnResult:
        result = await commit(self._store, when, then)
        self._answered = max(self._answered, result.revision)
        return result


def _elections(image: MetadataImage, seen: MetadataImage | None) -> Iterator[_Election]:
    """Yield what has to change: of all topics if brokers came or went since `seen`, else of those that changed."""
    everything = seen is None or _membership(seen.brokers) != _membership(image.brokers)
    for name, topic in image.topics.items():
        if not everything and seen is not None and seen.topics.get(name) is topic:
            continue
        for index, partition in enumerate(topic.partitions):
            decision = choose_leader(partition, image.brokers)
            if decision is not None:
                yield _Election(topic, index, decision)


def _membership(brokers: dict[int, BrokerImage]) -> dict[int, int]:
    return {node_id: broker.epoch for node_id, broker in brokers.items()}

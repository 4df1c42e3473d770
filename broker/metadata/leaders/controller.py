"""The controller: the broker that elects leaders when brokers join or leave. The first to put the key becomes it.

```
no controller  ── put /controller, if absent ──►  controller (epoch = the key's create revision)
controller     ── its session ends: the key vanishes ──►  no controller
```

Every transaction of a controller compares that key's create revision with its own epoch, so that a deposed one cannot
change anything. The controller acts on images: it searches the topics that a new one changed, or all topics if brokers
joined or left, for partitions whose leader must change. The outcome of a transaction, or the reason of its failure, is
in a newer image, so it polls nothing.

The controller also completes reassignments (`reassignment`). Any broker creates topics, alters configurations and runs
elections on request; the controller has no part in that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence

from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, TopicImage
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.leaders.leadership import choose_leader
from odradek.broker.metadata.leaders.reassignment import complete
from odradek.broker.metadata.leaders.state_changes import StateChange, transactions
from odradek.broker.metadata.store.commit import commit
from odradek.broker.metadata.store.store import (
    TEMPORARY_ERRORS,
    Cmp,
    DeletePrefix,
    LeaseLostError,
    MetadataStore,
    Op,
    Put,
    Session,
    StoreError,
    TxnResult,
    absent,
    created_at,
)
from odradek.broker.metadata.values import ControllerRecord, encode
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)

_RETRY_SECONDS = 0.5
_NAMED = 10
"""The number of partitions that one line of the log names."""


class Controller:
    """This broker as a candidate for controller, and as the controller.

    `image_changed` must be called with every image; `run` acts on it, in a task of the owner.
    """

    def __init__(
        self,
        store: MetadataStore,
        keys: Keys,
        record: ControllerRecord,
        log_config: Callable[[TopicImage], LogConfig],
        request_progress: Callable[[int], None],
    ) -> None:
        """`log_config` returns the properties of a topic.

        `request_progress(revision)` is called when this waits for an image of that revision: there may be no change.
        """
        self._store = store
        self._keys = keys
        self._lease = 0
        self._record = record
        self._log_config = log_config
        self._request_progress = request_progress
        self._image: MetadataImage | None = None
        self._seen: dict[int, tuple[int, bool]] | None = None  # the brokers for which the last elections were complete
        self._unchecked: dict[bytes, None] = {}  # topics that have changed since then
        self._changed = asyncio.Event()
        self._settled = asyncio.Event()
        self._failure: StoreError | None = None
        self._answered = 0
        self.epoch = 0
        self.unclean_elections = 0

    async def stand(self, session: Session) -> None:
        """Become the controller if there is none, now or later, under this session instead of the one before."""
        self._lease = session.lease
        self.epoch = 0
        self._seen = None
        await self._campaign()
        self._changed.set()

    async def _campaign(self) -> None:
        put = Put(self._keys.controller, encode(self._record), self._lease)
        result = await self._commit((absent(self._keys.controller),), (put,))
        if result.ok:
            self.epoch = result.revision

    def image_changed(self, change: ImageChange) -> None:
        self._image = change.after
        self._unchecked.update(dict.fromkeys(change.topic_ids))
        if change.before.broker_configs is not change.after.broker_configs:  # unclean elections may be allowed now
            self._unchecked.update(dict.fromkeys(change.after.topics_by_id))
        self._settled.clear()
        self._changed.set()

    async def settled(self) -> None:
        """Return when everything is done for the last image. Raises `StoreError` after `fail`."""
        await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def fail(self, error: StoreError) -> None:
        """End `settled` with `error`: no later image will arrive, or be acted on."""
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
            try:
                await self._act(image)
            except LeaseLostError:
                continue  # until `stand`
            except TEMPORARY_ERRORS as error:
                # The store is full, say: an operator must correct it, and then everything must be looked at again.
                _LOG.warning("controller waits for the metadata store", reason=str(error))
                self._seen = None
                self._changed.set()
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            # The outcome of a transaction arrives as an image; until then there may be more to do.
            if self._image is not None and self._image.revision < self._answered:
                self._request_progress(self._answered)
            elif image is self._image:
                self._settled.set()

    async def _act(self, image: MetadataImage) -> None:
        if self._has_key_of(image):
            self.epoch = image.controller_epoch
        if image.controller_id < 0:
            await self._campaign()
        elif self.epoch and image.controller_epoch == self.epoch:
            first = self._seen is None
            brokers = _membership(image.brokers)
            unchecked, self._unchecked = self._unchecked, {}
            if await self._elect(image, image.topics_by_id if self._seen != brokers else unchecked):
                self._seen = brokers
            else:  # a newer image will arrive, whose change made the transaction fail
                self._unchecked |= unchecked
            if first:
                await self._delete_leftovers(image)
        else:
            self._seen = None

    def _has_key_of(self, image: MetadataImage) -> bool:
        """Return whether this broker put the controller's key of the image after it registered.

        It may not know: an attempt that was given up may be applied late, after the answer to a repeated one.
        """
        here = image.brokers.get(self._record.broker)
        return here is not None and image.controller_id == here.node_id and image.controller_epoch > here.epoch

    async def _elect(self, image: MetadataImage, topic_ids: Collection[bytes]) -> bool:
        """Elect leaders of these topics where necessary. Returns True if every transaction succeeded."""
        accepted = True
        damaged: list[str] = []
        changes = self._changes(image, topic_ids)
        guard = created_at(self._keys.controller, self.epoch)
        for transaction in transactions(self._keys, image.brokers, changes, guard):
            if not (await self._commit(transaction.when, transaction.then)).ok:
                accepted = False
                continue
            damaged += [str(change) for change in transaction.changes if change.decision.may_have_lost]
            self.unclean_elections += sum(change.decision.is_unclean for change in transaction.changes)
        if damaged:
            # The only in-sync replica has restarted without a clean stop, or an election was unclean.
            named = ", ".join(damaged[:_NAMED])
            _LOG.warning("records may be lost", count=len(damaged), partitions=named)
        return accepted

    def _changes(self, image: MetadataImage, topic_ids: Collection[bytes]) -> Iterator[StateChange]:
        """Yield the necessary elections of these topics, as far as they exist."""
        for topic_id in topic_ids:
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            config = self._log_config(topic)
            unclean, min_insync = config.unclean_leader_election_enable, config.min_insync_replicas
            for index, partition in enumerate(topic.partitions):
                decision = choose_leader(partition, image.brokers, unclean=unclean, min_insync=min_insync)
                if decision is None and partition.adding_replicas + partition.removing_replicas:
                    decision = complete(partition, image.brokers, min_insync=min_insync)
                if decision is not None:
                    yield StateChange(topic, index, decision)

    async def _delete_leftovers(self, image: MetadataImage) -> None:
        """Delete the partitions of interrupted creations.

        A topic's first partition is written together with its name. While that partition does not exist, neither does
        the name; a creation that is still running then fails, because its other partitions are gone.
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


def _membership(brokers: dict[int, BrokerImage]) -> dict[int, tuple[int, bool]]:
    """Return what an election depends on: the epoch of each broker, and whether it is draining."""
    return {node_id: (broker.epoch, broker.is_draining) for node_id, broker in brokers.items()}

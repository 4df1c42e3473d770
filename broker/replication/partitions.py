"""The partitions of this broker: found by topic name or id, made and ended as the metadata image changes.

```
image change ─► steps ─► run at once, for some milliseconds ─► the rest in slices, other work of the loop between them
                 │
                 ├─ topic gone, or no replica here any more: refuse everybody, wait for appends, delete the log
                 ├─ replica here for the first time: find or create its log, lead or follow
                 ├─ another leader, epoch, in-sync set: tell the partition
                 └─ other configs: give its log a new LogConfig
```

Steps run in the order of the changes, and a step that must wait holds up those behind it: a topic that is deleted and
created again under the same name has its old log gone before the new one comes. A small change is done before `apply`
returns, so that no client sees a topic in Metadata whose partitions are not led yet. Used on the event loop only. The
part of Kafka's `ReplicaManager` that applies metadata is the model.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from broker.clock import Clock
from broker.event_log import EventLogger
from broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from broker.metrics import Metrics
from broker.purgatory import Purgatory
from broker.replication.disk_threads import DiskThreads
from broker.replication.partition import Partition
from broker.storage.log_config import LogConfig
from broker.storage.log_dir import LogDir
from broker.tasks import BackgroundTasks
from protocol.errors import ErrorCode, KafkaError

_LOG = EventLogger(__name__)

_SLICE = 0.01
"""Seconds that steps may hold the loop at a time: about fifty new partitions."""

Step = Callable[[], Awaitable[None] | None]


class Partitions:
    """The registry. `log_config_of` says what holds for the logs of a topic, by what an image sets."""

    def __init__(
        self,
        *,
        node_id: int,
        log_dir: LogDir,
        log_config_of: Callable[[MetadataImage, TopicImage], LogConfig],
        purgatories: Sequence[Purgatory[Any]],
        threads: DiskThreads,
        tasks: BackgroundTasks,
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._node_id = node_id
        self._log_dir = log_dir
        self._log_config_of = log_config_of
        self._purgatories = purgatories
        self._threads = threads
        self._tasks = tasks
        self._metrics = metrics
        self._clock = clock
        self._image = MetadataImage()
        self._by_name: dict[str, dict[int, Partition]] = {}
        self._by_id: dict[bytes, dict[int, Partition]] = {}
        self._steps: deque[Step] = deque()
        self._step_task: asyncio.Task[None] | None = None
        self._settling: list[asyncio.Future[None]] = []

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_id.values():
            yield from partitions.values()

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    def get(self, topic: str, index: int) -> Partition:
        """The partition of a topic by name.

        Raises KafkaError UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER (KAFKA_STORAGE_ERROR) if it exists,
        but not here.
        """
        try:
            return self._by_name[topic][index]
        except KeyError:
            raise self._why_not_here(self._image.topics.get(topic), f"{topic}-{index}", index) from None

    def get_by_id(self, topic_id: bytes, index: int) -> Partition:
        """The partition of a topic by id. Raises KafkaError as `get` does, and UNKNOWN_TOPIC_ID."""
        try:
            return self._by_id[topic_id][index]
        except KeyError:
            topic = self._image.topics_by_id.get(topic_id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {topic_id.hex()}") from None
            raise self._why_not_here(topic, f"{topic.name}-{index}", index) from None

    def apply(self, image: MetadataImage) -> None:
        """Bring the partitions in line with a newer image: now, or as soon as may be; see `settled`."""
        before, self._image = self._image, image
        self._steps.extend(self._steps_between(before, image))
        if self._step_task is None:
            self._run_steps()

    async def settled(self) -> None:
        """Wait until all images applied so far have taken effect."""
        if self._steps:
            settling: asyncio.Future[None] = self._threads.create_future()
            self._settling.append(settling)
            await settling

    def log_dir_failed(self) -> None:
        """Refuse everything from now on with KAFKA_STORAGE_ERROR: the directory under the logs cannot be trusted."""
        for partition in self:
            partition.offline = True
            self._release(partition)

    async def drained(self) -> None:
        """Wait until no append is on its way to any log; for the end, when no request comes any more."""
        for partition in tuple(self):
            await partition.drained()

    def _why_not_here(self, topic: TopicImage | None, name: str, index: int) -> KafkaError:
        if topic is None or not 0 <= index < len(topic.partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
        if self._node_id in topic.partitions[index].replicas and self._log_dir.failure.error is not None:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is in a log directory that has failed")
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is led by {topic.partitions[index].leader}")

    def _steps_between(self, before: MetadataImage, after: MetadataImage) -> Iterator[Step]:
        for topic_id, topic in before.topics_by_id.items():
            if topic_id not in after.topics_by_id:
                for index, image in enumerate(topic.partitions):
                    if self._node_id in image.replicas:
                        yield partial(self._delete, topic, index)
        if after.broker_configs != before.broker_configs:
            yield from (partial(self._reconfigure, topic) for topic in after.topics_by_id.values())
        for topic_id, topic in after.topics_by_id.items():
            old = before.topics_by_id.get(topic_id)
            if topic is not old:
                yield from self._steps_of_topic(old, topic)

    def _steps_of_topic(self, old: TopicImage | None, new: TopicImage) -> Iterator[Step]:
        if old is not None and old.configs != new.configs:
            yield partial(self._reconfigure, new)
        for index, image in enumerate(new.partitions):
            before = old.partitions[index] if old is not None and index < len(old.partitions) else None
            if self._node_id in image.replicas:
                if image is not before:
                    yield partial(self._update, new, index, image)
            elif before is not None and self._node_id in before.replicas:
                yield partial(self._delete, new, index)

    def _run_steps(self) -> None:
        """Run steps until they are done, take too long, or one of them must wait; then go on later."""
        stop_at = self._clock.monotonic() + _SLICE
        while self._steps:
            waiting = self._run_step(self._steps[0])
            if waiting is not None or self._clock.monotonic() >= stop_at:
                self._step_task = self._tasks.start("partition changes", self._run_steps_later(waiting))
                return
            self._steps.popleft()
        settling, self._settling = self._settling, []
        for future in settling:
            if not future.done():
                future.set_result(None)

    async def _run_steps_later(self, waiting: Awaitable[None] | None) -> None:
        if waiting is not None:
            await waiting
        else:
            await asyncio.sleep(0)
        self._steps.popleft()
        self._step_task = None
        self._run_steps()

    @staticmethod
    def _run_step(step: Step) -> Awaitable[None] | None:
        try:
            return step()
        except KafkaError as error:
            # The disk failed under it, which takes all partitions offline; the others still must not be held up.
            _LOG.error("partition not changed", error=str(error))
            return None

    def _update(self, topic: TopicImage, index: int, image: PartitionImage) -> None:
        partition = self._by_id.get(topic.topic_id, {}).get(index)
        if partition is None:
            partition = self._add(topic, index)
        if partition.apply(image):
            self._release(partition)

    def _add(self, topic: TopicImage, index: int) -> Partition:
        log = self._log_dir.logs.get((topic.name, index))
        if log is not None and log.topic_id != topic.topic_id:
            # Deleted, perhaps while this broker was down, and created again under the same name.
            self._log_dir.delete_log(topic.name, index)
            log = None
        config = self._log_config_of(self._image, topic)
        if log is None:
            log = self._log_dir.create_log(topic.name, index, topic.topic_id, config)
        else:
            log.config = config
        partition = Partition(
            topic.name,
            topic.topic_id,
            index,
            log,
            node_id=self._node_id,
            metrics=self._metrics.topic(topic.name),
            threads=self._threads,
            on_advance=self._touch,
        )
        by_index = self._by_id.setdefault(topic.topic_id, {})
        by_index[index] = partition
        self._by_name[topic.name] = by_index
        return partition

    def _reconfigure(self, topic: TopicImage) -> None:
        config = self._log_config_of(self._image, topic)
        for partition in self._by_id.get(topic.topic_id, {}).values():
            partition.log.config = config

    def _delete(self, topic: TopicImage, index: int) -> Awaitable[None] | None:
        by_index = self._by_id.get(topic.topic_id, {})
        partition = by_index.pop(index, None)
        if partition is None:
            return None
        if not by_index:
            del self._by_id[topic.topic_id]
            if self._by_name.get(topic.name) is by_index:
                del self._by_name[topic.name]
                self._metrics.remove_topic(topic.name)
        partition.resign()
        self._release(partition)
        if partition.is_busy:
            return self._delete_when_drained(partition)
        self._log_dir.delete_log(topic.name, index)
        return None

    async def _delete_when_drained(self, partition: Partition) -> None:
        await partition.drained()
        self._log_dir.delete_log(partition.topic, partition.index)

    def _touch(self, partition: Partition) -> None:
        for purgatory in self._purgatories:
            purgatory.touch(partition)

    def _release(self, partition: Partition) -> None:
        for purgatory in self._purgatories:
            purgatory.release(partition)

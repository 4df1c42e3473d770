"""The transactions that create, grow and delete topics.

A transaction of the store has at most `max_operations`; a *batch* is as many partitions as fit into one. Topics that
are changed together share transactions, as many as fit; the same holds for each of them:

```
create   names absent → names, configs, assignments, states
         a topic of more than a batch: the further batches first, then a transaction with its first batch, which also
         compares that the second one is still there
grow     names as seen → names with the new number, assignments, states
         by more than a batch: the further batches first, each comparing the name as well, then that transaction
delete   names as seen → names, configs, assignments and states deleted, records of the deletions
         the keys under a topic's prefix are deleted by one operation, but counted: an image loses no more partitions
         at once than it gains, unless one topic has more
```

The name is the commit point: before it exists, or has the new number, no client sees the topic or its new partitions.
The leftovers of an interrupted creation are invisible, and the next controller deletes them. The leftovers of an
interrupted growth are overwritten by the next growth, and deleted with the topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from odradek.broker.metadata.deleted_topics import deletion_record
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, DeletePrefix, Op, Put, absent, still
from odradek.broker.metadata.values import Assignment, PartitionState, TopicRecord, encode, encode_configs
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.uuids import uuid_to_text

_MAX_BYTES = 256 << 10
"""The most bytes that several topics may share a transaction with; etcd refuses one of more than 1.5 MB."""

_BESIDE_PARTITIONS = 8
"""Operations and comparisons that are kept free for a topic's name, its properties and the cluster's record."""


class PlannedTopic(NamedTuple):
    """A topic to write, and the revision of the properties that are stored under its name, 0 if there are none."""

    topic: TopicImage
    configs_revision: int


class PlannedGrowth(NamedTuple):
    """A topic with its new partitions, of which `first_new` is the first."""

    topic: TopicImage
    first_new: int


class _Write(NamedTuple):
    """The last transaction of a change of a topic, or its part of one.

    It has the batch of partitions from `first` on; `deleted` is the number of those that it deletes.
    """

    topic: TopicImage
    when: Sequence[Cmp]
    then: Sequence[Op]
    first: int = 0
    deleted: int = 0

    @property
    def changes(self) -> int:
        """The number of its operations, and of the keys of the partitions that it deletes."""
        return len(self.then) + 2 * self.deleted

    @property
    def size(self) -> int:
        return sum(len(op.value) for op in self.then if isinstance(op, Put))


Pause = Callable[[], Awaitable[None]]
"""Lets other clients run, if a long request has run long enough."""


Report = Callable[[TopicImage, KafkaError | None], None]
"""Is called with each topic as soon as its change is written; with an error if it may be: the store did not answer."""


async def no_pause() -> None:
    """Do not pause: the caller is not one of many clients."""


def no_report(_: TopicImage, __: KafkaError | None) -> None:
    """Report no change: the caller acts for no client."""


async def write_topics(
    metadata: Metadata, planned: Sequence[PlannedTopic], pause: Pause, report: Report
) -> list[bool | KafkaError]:
    """Create topics; return for each True, or False if another broker was first, or why the store did not write it.

    False is also for the topics in the same transaction; then nothing of any of them is left. Awaits `pause` before
    each transaction.
    """
    return await _write_all(metadata, [_last_write(metadata, each) for each in planned], _create, pause, report)


async def write_topic(metadata: Metadata, planned: PlannedTopic) -> bool:
    """Create one topic; return False if another broker was first. Raises `KafkaError`."""
    return await _create(metadata, [_last_write(metadata, planned)])


async def write_growths(
    metadata: Metadata, planned: Sequence[PlannedGrowth], pause: Pause, report: Report
) -> list[bool | KafkaError]:
    """Add partitions to topics; return as `write_topics` does. False: none of the transaction's topics has grown."""
    return await _write_all(metadata, [_growth(metadata, each) for each in planned], _grow, pause, report)


async def write_deletions(
    metadata: Metadata, topics: Sequence[TopicImage], pause: Pause, report: Report
) -> list[bool | KafkaError]:
    """Delete topics; return as `write_topics` does. False: none of the transaction's topics is deleted."""
    return await _write_all(metadata, [_deletion(metadata, each) for each in topics], _commit, pause, report)


def batch_size(metadata: Metadata) -> int:
    """Return the number of partitions in a batch: each is two operations."""
    return (metadata.store.max_operations - _BESIDE_PARTITIONS) // 2


def _last_write(metadata: Metadata, planned: PlannedTopic) -> _Write:
    topic, configs_revision = planned
    name_key, config_key = metadata.keys.topic_name(topic.name), metadata.keys.topic_config(topic.name)
    then: list[Op] = [Put(name_key, encode(_record(topic))), *_partition_puts(metadata, topic, 0)]
    if topic.configs:
        then.append(Put(config_key, encode_configs(topic.configs)))
    elif configs_revision:
        then.append(Delete(config_key))
    return _Write(topic, (absent(name_key), still(config_key, configs_revision)), then)


def _growth(metadata: Metadata, planned: PlannedGrowth) -> _Write:
    topic, first_new = planned
    name_key = metadata.keys.topic_name(topic.name)
    then = (Put(name_key, encode(_record(topic))), *_partition_puts(metadata, topic, first_new))
    return _Write(topic, (still(name_key, topic.name_revision),), then, first_new)


def _deletion(metadata: Metadata, topic: TopicImage) -> _Write:
    keys = metadata.keys
    name_key = keys.topic_name(topic.name)
    then = (
        Delete(name_key),
        DeletePrefix(keys.topic(topic.topic_id)),
        Delete(keys.topic_config(topic.name)),
        deletion_record(metadata, topic),
    )
    return _Write(topic, (still(name_key, topic.name_revision),), then, deleted=len(topic.partitions))


async def _write_all(
    metadata: Metadata,
    writes: Sequence[_Write],
    commit: Callable[[Metadata, Sequence[_Write]], Awaitable[bool]],
    pause: Pause,
    report: Report,
) -> list[bool | KafkaError]:
    outcomes: list[bool | KafkaError] = []
    for group in _groups(metadata, writes):
        await pause()
        outcome: bool | KafkaError
        try:
            outcome = await commit(metadata, group)
        except KafkaError as error:
            outcome = error.fresh()
        failure = outcome if isinstance(outcome, KafkaError) else None
        if outcome is True or (failure is not None and failure.code is ErrorCode.REQUEST_TIMED_OUT):
            for write in group:
                report(write.topic, failure)
        outcomes += [outcome] * len(group)
    return outcomes


def _groups(metadata: Metadata, writes: Sequence[_Write]) -> Iterator[list[_Write]]:
    """Yield the topics that share a transaction, in order. One that is too large for others is alone."""
    most = metadata.store.max_operations - _BESIDE_PARTITIONS  # comparisons are added: of the cluster, of batches
    group: list[_Write] = []
    comparisons = changes = size = 0
    for write in writes:
        comparisons, changes, size = comparisons + len(write.when), changes + write.changes, size + write.size
        if group and (max(comparisons, changes) > most or size > _MAX_BYTES):
            yield group
            group = []
            comparisons, changes, size = len(write.when), write.changes, write.size
        group.append(write)
    if group:
        yield group


async def _commit(metadata: Metadata, group: Sequence[_Write], more: Sequence[Cmp] = ()) -> bool:
    """Write topics in one transaction; return False if another broker was first with one. Raises `KafkaError`."""
    when = [*(cmp for write in group for cmp in write.when), *more]
    return (await metadata.commit(when, [op for write in group for op in write.then])).ok


async def _create(metadata: Metadata, group: Sequence[_Write]) -> bool:
    """Create topics; return False if another broker was first with one. Raises `KafkaError`."""
    batches: list[Cmp] = []
    for write in group:
        batches += await _write_further_batches(metadata, write)
    is_done = await _commit(metadata, group, batches)
    if not is_done:
        for write in group:
            await _clean_up(metadata, write.topic)
    return is_done


async def _grow(metadata: Metadata, group: Sequence[_Write]) -> bool:
    """Add partitions to topics; return False if another broker was first with one. Raises `KafkaError`."""
    for write in group:
        for first in _further_batches(metadata, write):
            if not (await metadata.commit(write.when, _partition_puts(metadata, write.topic, first))).ok:
                return False
    return await _commit(metadata, group)


def _further_batches(metadata: Metadata, write: _Write) -> range:
    """Return the first partition of each batch after that of the last transaction."""
    batch = batch_size(metadata)
    return range(write.first + batch, len(write.topic.partitions), batch)


async def _write_further_batches(metadata: Metadata, write: _Write) -> list[Cmp]:
    """Write all batches but the first; return the comparison that they are still there, if there are any."""
    written: list[Cmp] = []
    for first in _further_batches(metadata, write):
        key = metadata.keys.partition_state(write.topic.topic_id, first)
        result = await metadata.commit((absent(key),), _partition_puts(metadata, write.topic, first))
        written = written or [still(key, result.revision)]
    return written


async def _clean_up(metadata: Metadata, topic: TopicImage) -> None:
    """Delete the batches of a creation that failed; the compared key would exist if it had succeeded."""
    if len(topic.partitions) > batch_size(metadata):
        await metadata.commit(
            (absent(metadata.keys.partition_state(topic.topic_id, 0)),),
            (DeletePrefix(metadata.keys.topic(topic.topic_id)),),
        )


def _record(topic: TopicImage) -> TopicRecord:
    return TopicRecord(uuid_to_text(topic.topic_id), len(topic.partitions), len(topic.partitions[0].replicas))


def _partition_puts(metadata: Metadata, topic: TopicImage, first: int) -> list[Op]:
    """Return the operations of the batch from partition `first` on."""
    puts: list[Op] = []
    for index in range(first, min(first + batch_size(metadata), len(topic.partitions))):
        partition = topic.partitions[index]
        state = PartitionState(partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch)
        puts.append(Put(metadata.keys.partition_state(topic.topic_id, index), encode(state)))
        puts.append(Put(metadata.keys.assignment(topic.topic_id, index), encode(Assignment(partition.replicas))))
    return puts

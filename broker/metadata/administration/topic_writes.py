"""The transactions that create and grow topics.

A transaction of the store has at most `max_operations`; a *batch* is as many partitions as fit into one.

```
create   one transaction for as many topics as fit   names absent → names, configs, assignments, states
         a topic of more than a batch: the further batches first, then a transaction with its first batch, which also
         compares that the second one is still there
grow     up to a batch: one transaction              name as seen → name with the new number, assignments, states
         more: the further batches, each comparing the name as well, and then that transaction
```

The name is the commit point: before it exists, or has the new number, no client sees the topic or its new partitions.
The leftovers of an interrupted creation are invisible, and the next controller deletes them. The leftovers of an
interrupted growth are overwritten by the next growth, and deleted with the topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, DeletePrefix, Op, Put, absent, still
from odradek.broker.metadata.values import Assignment, PartitionState, TopicRecord, encode, encode_configs
from odradek.protocol.errors import KafkaError
from odradek.protocol.uuids import uuid_to_text

_MAX_BYTES = 256 << 10
"""The most bytes that several topics may share a transaction with; etcd refuses one of more than 1.5 MB."""

_BESIDE_PARTITIONS = 8
"""Operations and comparisons that are kept free for a topic's name, its properties and the cluster's record."""


class PlannedTopic(NamedTuple):
    """A topic to write, and the revision of the properties that are stored under its name, 0 if there are none."""

    topic: TopicImage
    configs_revision: int


class _Write(NamedTuple):
    """The last transaction of a topic's creation, or its part of one."""

    topic: TopicImage
    when: Sequence[Cmp]
    then: Sequence[Op]

    @property
    def size(self) -> int:
        return sum(len(op.value) for op in self.then if isinstance(op, Put))


async def write_topics(
    metadata: Metadata, planned: Sequence[PlannedTopic], pause: Callable[[], Awaitable[None]]
) -> list[bool | KafkaError]:
    """Write topics; return for each True, or False if another broker was first, or why the store did not write it.

    False is also for the topics in the same transaction; then nothing of any of them is left. Awaits `pause` before
    each transaction.
    """
    outcomes: list[bool | KafkaError] = []
    for group in _groups(metadata, [_last_write(metadata, each) for each in planned]):
        await pause()
        outcome: bool | KafkaError
        try:
            outcome = await _commit(metadata, group)
        except KafkaError as error:
            outcome = error
        outcomes += [outcome] * len(group)
    return outcomes


async def write_topic(metadata: Metadata, planned: PlannedTopic) -> bool:
    """Write one topic; return False if another broker was first. Raises `KafkaError`."""
    return await _commit(metadata, [_last_write(metadata, planned)])


async def write_growth(metadata: Metadata, topic: TopicImage, first_new: int) -> bool:
    """Write the partitions from `first_new` on. Returns False if another broker was first. Raises `KafkaError`."""
    name_key, batch = metadata.keys.topic_name(topic.name), batch_size(metadata)
    when = (still(name_key, topic.name_revision),)
    for first in range(first_new + batch, len(topic.partitions), batch):
        if not (await metadata.commit(when, _partition_puts(metadata, topic, first))).ok:
            return False
    then = (Put(name_key, encode(_record(topic))), *_partition_puts(metadata, topic, first_new))
    return (await metadata.commit(when, then)).ok


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


def _groups(metadata: Metadata, writes: Sequence[_Write]) -> Iterator[list[_Write]]:
    """Yield the topics that share a transaction, in order. One that is too large for others is alone."""
    most = metadata.store.max_operations - _BESIDE_PARTITIONS  # comparisons are added: of the cluster, of batches
    group: list[_Write] = []
    comparisons = operations = size = 0
    for write in writes:
        comparisons, operations, size = comparisons + len(write.when), operations + len(write.then), size + write.size
        if group and (max(comparisons, operations) > most or size > _MAX_BYTES):
            yield group
            group = []
            comparisons, operations, size = len(write.when), len(write.then), write.size
        group.append(write)
    if group:
        yield group


async def _commit(metadata: Metadata, group: Sequence[_Write]) -> bool:
    """Write topics in one transaction; return False if another broker was first with one. Raises `KafkaError`."""
    when = [cmp for write in group for cmp in write.when]
    for write in group:
        when += await _write_further_batches(metadata, write.topic)
    result = await metadata.commit(when, [op for write in group for op in write.then])
    if not result.ok:
        for write in group:
            await _clean_up(metadata, write.topic)
    return result.ok


async def _write_further_batches(metadata: Metadata, topic: TopicImage) -> list[Cmp]:
    """Write all batches but the first; return the comparison that they are still there, if there are any."""
    batch = batch_size(metadata)
    written: list[Cmp] = []
    for first in range(batch, len(topic.partitions), batch):
        key = metadata.keys.partition_state(topic.topic_id, first)
        result = await metadata.commit((absent(key),), _partition_puts(metadata, topic, first))
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

"""Creating, growing and deleting topics. Any broker does it, with transactions: only one of several rivals succeeds.

```
create   up to 60 partitions: one transaction    name absent → name, config, assignments, states
         more: batches of 60 from partition 60 on, and then that transaction with the first 60; it also
         compares that the first batch is still there
grow     up to 60 new partitions: one transaction   name as seen → name with the new number, assignments, states
         more: batches of 60 from the 61st on, each comparing the name as well, and then that transaction
delete   one transaction                         name as seen → name, config and all keys under the id deleted,
                                                 the deletion recorded
```

The name is the commit point: before it exists, or has the new number, no client sees the topic or its new partitions.
The leftovers of an interrupted creation are invisible, and the next controller deletes them. The leftovers of an
interrupted growth are overwritten by the next growth, and deleted with the topic. All functions return when this
broker's own image has the outcome and all of its callbacks have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from odradek.broker.config.topic_config import validate
from odradek.broker.metadata.administration.placement import DEFAULT, Candidates, place, place_as_assigned
from odradek.broker.metadata.administration.topic_names import check_new_name
from odradek.broker.metadata.deleted_topics import deletion_record
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.store import Cmp, Delete, DeletePrefix, Op, Put, absent, still
from odradek.broker.metadata.values import Assignment, PartitionState, TopicRecord, encode, encode_configs
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.plural import pluralize
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.uuids import uuid_to_text

Charge = Callable[[int], None]
"""Charges a valid request with the partitions that it creates or deletes; it may raise `KafkaError`."""

PARTITIONS_PER_TRANSACTION = 60
"""Two operations for each; with the name and the properties 122 of the 128 that a transaction may have."""


async def create_topic(
    metadata: Metadata,
    name: str,
    partitions: int = DEFAULT,
    replication_factor: int = DEFAULT,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
    validate_only: bool = False,
    charge: Charge | None = None,
) -> TopicImage:
    """Create a topic; -1 means the broker's default. With `validate_only` return what would be created.

    Raises `KafkaError` INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST (counts beside an assignment), POLICY_VIOLATION (too
    many partitions), KAFKA_STORAGE_ERROR.
    """
    while True:
        image = metadata.image
        if name in image.topics:
            # Kafka's text: programs search for it in a client's exception.
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {name!r} already exists.")
        check_new_name(name, image.topics)
        validate(configs or {}, metadata.current_config.log_config())
        replicas = _replicas(metadata, partitions, replication_factor, assignments or {})
        topic = TopicImage(
            name=name,
            topic_id=metadata.randomness.uuid(),
            partitions=_new_partitions(image, replicas),
            configs={key: text for key, text in (configs or {}).items() if text is not None},
        )
        if charge is not None:
            charge(len(topic.partitions))
            charge = None
        if validate_only or await write_topic(metadata, topic, image.topic_configs.get(name, ({}, 0))[1]):
            # If it is deleted again already, return it as it was created.
            return metadata.image.topics_by_id.get(topic.topic_id, topic)
        # Another broker was first, or a new controller deleted the batches as leftovers: try again.


async def grow_topic(
    metadata: Metadata,
    name: str,
    count: int,
    assignments: Sequence[Sequence[int]] | None = None,
    validate_only: bool = False,
    charge: Charge | None = None,
) -> None:
    """Grow a topic to `count` partitions; `assignments` are the replicas of each new one, None: placed by rule.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, POLICY_VIOLATION
    (too many at once), KAFKA_STORAGE_ERROR.
    """
    while True:
        image = metadata.image
        topic = find_topic(image, name=name)
        replicas = _new_replicas(topic, count, assignments, Candidates.of(image))
        partitions = [*topic.partitions, *_new_partitions(image, replicas)]
        grown = msgspec.structs.replace(topic, partitions=partitions)
        if charge is not None:
            charge(len(replicas))
            charge = None
        if validate_only or await _write_growth(metadata, grown, len(topic.partitions)):
            return


async def delete_topic(
    metadata: Metadata, *, name: str | None = None, topic_id: bytes | None = None, charge: Charge | None = None
) -> TopicImage:
    """Delete the topic with that name, or else with that id, and return its last image.

    Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_DELETION_DISABLED, KAFKA_STORAGE_ERROR.
    """
    if not metadata.config.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
    while True:
        topic = find_topic(metadata.image, name=name, topic_id=topic_id)
        if charge is not None:
            charge(len(topic.partitions))
            charge = None
        keys = metadata.keys
        result = await metadata.commit(
            (still(keys.topic_name(topic.name), topic.name_revision),),
            (
                Delete(keys.topic_name(topic.name)),
                DeletePrefix(keys.topic(topic.topic_id)),
                Delete(keys.topic_config(topic.name)),
                deletion_record(metadata, topic),
            ),
        )
        if result.ok:
            return topic


def find_topic(image: MetadataImage, *, name: str | None = None, topic_id: bytes | None = None) -> TopicImage:
    """Return the topic. Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID."""
    if name is not None:
        topic = image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return topic
    topic = image.topics_by_id.get(topic_id or b"")
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with id {uuid_to_text(topic_id or ZERO_UUID)}")
    return topic


def find_partition(image: MetadataImage, name: str, index: int) -> PartitionImage:
    """Return the partition. Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION."""
    topic = image.topics.get(name)
    partition = None if topic is None else topic.partition(index)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{index}")
    return partition


def _replicas(
    metadata: Metadata, partitions: int, replication_factor: int, assignments: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    brokers = Candidates.of(metadata.image)
    if assignments:
        if partitions != DEFAULT or replication_factor != DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "with assigned replicas the number of partitions and the replication factor must be -1",
            )
        return place_as_assigned(assignments, brokers)
    return place(
        metadata.config.num_partitions if partitions == DEFAULT else partitions,
        metadata.config.default_replication_factor if replication_factor == DEFAULT else replication_factor,
        brokers,
    )


def _new_replicas(
    topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None, brokers: Candidates
) -> list[list[int]]:
    present = len(topic.partitions)
    if count <= present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name!r} has {pluralize(present, 'partition')}, it cannot be grown to {count}",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return place(count - present, replication_factor, brokers, present)
    if len(assignments) != count - present:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{pluralize(count - present, 'partition is', 'partitions are')} new,"
            f" but replicas are assigned for {len(assignments)}",
        )
    replicas = place_as_assigned(dict(enumerate(assignments, present)), brokers, present)
    if len(replicas[0]) != replication_factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the new partitions have {pluralize(len(replicas[0]), 'replica')},"
            f" those of the topic have {replication_factor}",
        )
    return replicas


def _new_partitions(image: MetadataImage, replicas: Iterable[list[int]]) -> list[PartitionImage]:
    """Return new partitions: their live replicas are in sync, and the first of these leads."""
    epochs = {node_id: image.brokers[node_id].epoch for node_id in Candidates.of(image).live}
    partitions = []
    for each in replicas:
        isr = {replica: epochs[replica] for replica in each if replica in epochs}
        partitions.append(PartitionImage(next(iter(isr)), leader_epoch=0, replicas=each, isr=isr, partition_epoch=0))
    return partitions


async def write_topic(metadata: Metadata, topic: TopicImage, configs_revision: int) -> bool:
    """Write a topic. Returns False if another broker was first; then nothing of it is left.

    `configs_revision`: the revision of the properties that are stored under its name, 0 if there are none.
    """
    keys = metadata.keys
    written: list[Cmp] = []
    for first in range(PARTITIONS_PER_TRANSACTION, len(topic.partitions), PARTITIONS_PER_TRANSACTION):
        key = keys.partition_state(topic.topic_id, first)
        result = await metadata.commit((absent(key),), _partition_puts(metadata, topic, first))
        written = written or [still(key, result.revision)]
    name_key, config_key = keys.topic_name(topic.name), keys.topic_config(topic.name)
    then: list[Op] = [Put(name_key, encode(_record(topic))), *_partition_puts(metadata, topic, 0)]
    then.append(Put(config_key, encode_configs(topic.configs)) if topic.configs else Delete(config_key))
    result = await metadata.commit((absent(name_key), still(config_key, configs_revision), *written), then)
    if not result.ok:
        await _clean_up(metadata, topic)
    return result.ok


async def _write_growth(metadata: Metadata, topic: TopicImage, first_new: int) -> bool:
    """Write the partitions from `first_new` on. Returns False if another broker was first."""
    name_key = metadata.keys.topic_name(topic.name)
    when = (still(name_key, topic.name_revision),)
    for first in range(first_new + PARTITIONS_PER_TRANSACTION, len(topic.partitions), PARTITIONS_PER_TRANSACTION):
        if not (await metadata.commit(when, _partition_puts(metadata, topic, first))).ok:
            return False
    then = (Put(name_key, encode(_record(topic))), *_partition_puts(metadata, topic, first_new))
    return (await metadata.commit(when, then)).ok


def _record(topic: TopicImage) -> TopicRecord:
    return TopicRecord(uuid_to_text(topic.topic_id), len(topic.partitions), len(topic.partitions[0].replicas))


def _partition_puts(metadata: Metadata, topic: TopicImage, first: int) -> list[Op]:
    puts: list[Op] = []
    for index in range(first, min(first + PARTITIONS_PER_TRANSACTION, len(topic.partitions))):
        partition = topic.partitions[index]
        state = PartitionState(partition.leader, partition.leader_epoch, partition.isr, partition.partition_epoch)
        puts.append(Put(metadata.keys.partition_state(topic.topic_id, index), encode(state)))
        puts.append(Put(metadata.keys.assignment(topic.topic_id, index), encode(Assignment(partition.replicas))))
    return puts


async def _clean_up(metadata: Metadata, topic: TopicImage) -> None:
    """Delete the batches of a creation that failed; the compared key would exist if it had succeeded."""
    if len(topic.partitions) > PARTITIONS_PER_TRANSACTION:
        await metadata.commit(
            (absent(metadata.keys.partition_state(topic.topic_id, 0)),),
            (DeletePrefix(metadata.keys.topic(topic.topic_id)),),
        )

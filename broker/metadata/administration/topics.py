"""Creating, growing and deleting topics: the decisions. `topic_writes` has the transactions.

Any broker does it: only one of several rivals succeeds, and the others decide again by the image after it. The topics
of one call share transactions, but fail independently, unless the store fails. All functions return when this broker's
own image has the outcome and all of its callbacks have run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from odradek.broker.config.topic_config import validate
from odradek.broker.metadata.administration.leader_counts import LeaderCounts
from odradek.broker.metadata.administration.placement import (
    DEFAULT,
    MAX_PARTITIONS,
    TOO_MANY_PARTITIONS,
    Candidates,
    place,
    place_as_assigned,
)
from odradek.broker.metadata.administration.topic_names import TakenNames
from odradek.broker.metadata.administration.topic_writes import (
    Pause,
    PlannedGrowth,
    PlannedTopic,
    Report,
    no_pause,
    no_report,
    write_deletions,
    write_growths,
    write_topics,
)
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.protocol.errors import NOT_HOSTED, ErrorCode, KafkaError, unknown_topic_id
from odradek.protocol.plural import pluralize
from odradek.protocol.schema import ZERO_UUID

Wanted = TypeVar("Wanted")
Planned = TypeVar("Planned")
Charge = Callable[[int], None]
"""Charges a valid request with the partitions that it creates or deletes; it may raise `KafkaError`."""


class NewTopic(NamedTuple):
    """A topic to create, as a client describes it: -1 means the broker's default; `assignments` are replicas."""

    name: str
    partitions: int = DEFAULT
    replication_factor: int = DEFAULT
    assignments: Mapping[int, Sequence[int]] = {}
    configs: Mapping[str, str | None] = {}


async def create_topics(
    metadata: Metadata,
    new: Sequence[NewTopic],
    *,
    validate_only: bool = False,
    charge: Charge | None = None,
    pause: Pause = no_pause,
    report: Report = no_report,
) -> list[TopicImage | KafkaError]:
    """Create topics whose names differ, as many as fit with one transaction. Return each topic, or why it failed.

    With `validate_only` return what would be created. Awaits `pause` before each topic, and raises what it raises: then
    the topics that were not yet written are not created.

    The errors: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
    INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST (counts beside an assignment), POLICY_VIOLATION (too
    many partitions), KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, and those of `charge`.
    """
    outcomes: dict[str, TopicImage | KafkaError] = {}
    charged: set[str] = set()
    while left := [each for each in new if each.name not in outcomes]:
        image = metadata.image
        taken = TakenNames(image.topics)
        brokers = _candidates(metadata, image)
        leaders = LeaderCounts(image) if brokers.hosts else None
        planned: list[PlannedTopic] = []
        for each in left:
            await pause()
            try:
                topic = _planned(metadata, image, brokers, leaders, taken, each)
                if charge is not None and each.name not in charged:
                    charge(len(topic.partitions))
                    charged.add(each.name)
            except KafkaError as error:
                outcomes[each.name] = error.fresh()
                continue
            taken.add(each.name)
            if leaders is not None:
                leaders.add(topic)
            planned.append(PlannedTopic(topic, image.topic_configs.get(each.name, ({}, 0))[1]))
        if validate_only:
            outcomes |= {topic.name: topic for topic, _ in planned}
            break
        for (topic, _), written in zip(planned, await write_topics(metadata, planned, pause, report), strict=True):
            if written is True:  # if it is deleted again already, return it as it was created
                outcomes[topic.name] = metadata.image.topics_by_id.get(topic.topic_id, topic)
            elif written is not False:
                outcomes[topic.name] = written
            # Else another broker was first, or a new controller deleted the batches as leftovers: try again.
    return [outcomes[each.name] for each in new]


async def create_topic(
    metadata: Metadata,
    name: str,
    partitions: int = DEFAULT,
    replication_factor: int = DEFAULT,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
    validate_only: bool = False,
    charge: Charge | None = None,
    report: Report = no_report,
) -> TopicImage:
    """Create one topic; see `create_topics`. Raises `KafkaError`."""
    new = NewTopic(name, partitions, replication_factor, assignments or {}, configs or {})
    (outcome,) = await create_topics(metadata, [new], validate_only=validate_only, charge=charge, report=report)
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


class Growth(NamedTuple):
    """A topic to grow to `partitions` in all; `assignments` are the replicas of each new one, None: placed by rule."""

    name: str
    partitions: int
    assignments: Sequence[Sequence[int]] | None = None


async def grow_topics(
    metadata: Metadata,
    growths: Sequence[Growth],
    *,
    validate_only: bool = False,
    charge: Charge | None = None,
    pause: Pause = no_pause,
    report: Report = no_report,
) -> list[TopicImage | KafkaError]:
    """Add partitions to topics whose names differ, to as many as fit with one transaction.

    Return each topic with its new partitions, or why it failed. Awaits `pause` before each topic, and raises what it
    raises: then the topics that were not yet written do not grow.

    The errors: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR
    (too few brokers or hosts are left), POLICY_VIOLATION (with this topic more than `MAX_PARTITIONS` are new),
    KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, and those of `charge`.
    """
    added: dict[str, int] = {}
    total = 0
    charge_once = _once(charge)

    def plan(growth: Growth) -> PlannedGrowth:
        nonlocal total
        image = metadata.image
        topic = find_topic(image, name=growth.name)
        present = len(topic.partitions)
        if total - added.get(growth.name, 0) + growth.partitions - present > MAX_PARTITIONS:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, TOO_MANY_PARTITIONS)
        brokers = _candidates(metadata, image)
        replicas = _new_replicas(topic, growth.partitions, growth.assignments, brokers)
        charge_once(growth.name, len(replicas))
        total += len(replicas) - added.get(growth.name, 0)
        added[growth.name] = len(replicas)
        partitions = [*topic.partitions, *_new_partitions(image, brokers, replicas)]
        return PlannedGrowth(msgspec.structs.replace(topic, partitions=partitions), present)

    async def write(planned: Sequence[PlannedGrowth]) -> list[bool | KafkaError]:
        return [True] * len(planned) if validate_only else await write_growths(metadata, planned, pause, report)

    outcomes = await _change(growths, plan, write, pause)
    return [outcome if isinstance(outcome, KafkaError) else outcome.topic for outcome in outcomes]


async def grow_topic(
    metadata: Metadata, name: str, count: int, assignments: Sequence[Sequence[int]] | None = None
) -> None:
    """Add partitions to one topic; see `grow_topics`. Raises `KafkaError`."""
    (outcome,) = await grow_topics(metadata, [Growth(name, count, assignments)])
    if isinstance(outcome, KafkaError):
        raise outcome


NAMED_BY_ID_TOO = "The provided topic name maps to an ID that was already supplied."
"""Kafka's message for a topic that one request names twice, by its name and by its id."""


class Naming(NamedTuple):
    """A topic as a client names it: by its name, or else by its id."""

    name: str | None
    topic_id: bytes = ZERO_UUID


async def delete_topics(
    metadata: Metadata,
    namings: Sequence[Naming],
    *,
    charge: Charge | None = None,
    pause: Pause = no_pause,
    report: Report = no_report,
) -> list[TopicImage | KafkaError]:
    """Delete topics, as many as fit with one transaction. Return the last image of each, or why it failed.

    Awaits `pause` before each topic, and raises what it raises: then the topics that were not yet written stay.

    The errors: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST (named earlier in `namings`, too),
    KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT, and those of `charge`. Raises `KafkaError` TOPIC_DELETION_DISABLED.
    """
    if not metadata.config.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false")
    naming_of: dict[bytes, Naming] = {}
    charge_once = _once(charge)

    def plan(naming: Naming) -> TopicImage:
        topic = find_topic(metadata.image, name=naming.name, topic_id=naming.topic_id)
        if naming_of.setdefault(topic.topic_id, naming) is not naming:
            raise KafkaError(ErrorCode.INVALID_REQUEST, NAMED_BY_ID_TOO)
        charge_once(topic.name, len(topic.partitions))
        return topic

    return await _change(namings, plan, lambda topics: write_deletions(metadata, topics, pause, report), pause)


async def delete_topic(metadata: Metadata, *, name: str | None = None, topic_id: bytes = ZERO_UUID) -> TopicImage:
    """Delete one topic; see `delete_topics`. Raises `KafkaError`."""
    (outcome,) = await delete_topics(metadata, [Naming(name, topic_id)])
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


async def _change(
    wanted: Sequence[Wanted],
    plan: Callable[[Wanted], Planned],
    write: Callable[[Sequence[Planned]], Awaitable[Sequence[bool | KafkaError]]],
    pause: Pause,
) -> list[Planned | KafkaError]:
    """Plan changes of topics and write them together; plan those again that are not written. Return each, or its error.

    `plan` may raise `KafkaError`; `write` returns what `topic_writes` does.
    """
    outcomes: dict[int, Planned | KafkaError] = {}
    while left := [index for index in range(len(wanted)) if index not in outcomes]:
        planned: dict[int, Planned] = {}
        for index in left:
            await pause()
            try:
                planned[index] = plan(wanted[index])
            except KafkaError as error:
                outcomes[index] = error.fresh()
        for index, written in zip(planned, await write(list(planned.values())), strict=True):
            if written is True:
                outcomes[index] = planned[index]
            elif written is not False:
                outcomes[index] = written
    return [outcomes[index] for index in range(len(wanted))]


def _once(charge: Charge | None) -> Callable[[str, int], None]:
    """Return a function that charges for each name once, because a topic may be planned again."""
    charged: set[str] = set()

    def charge_once(name: str, partitions: int) -> None:
        if charge is not None and name not in charged:
            charge(partitions)
            charged.add(name)

    return charge_once


def find_topic(image: MetadataImage, *, name: str | None = None, topic_id: bytes | None = None) -> TopicImage:
    """Return the topic. Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID."""
    if name is not None:
        topic = image.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{NOT_HOSTED} There is no topic {name!r}.")
        return topic
    topic = image.topics_by_id.get(topic_id or b"")
    if topic is None:
        raise unknown_topic_id(topic_id or ZERO_UUID)
    return topic


def _candidates(metadata: Metadata, image: MetadataImage) -> Candidates:
    return Candidates.of(image, workers_count_as_brokers=metadata.config.workers_count_as_brokers)


def _planned(
    metadata: Metadata,
    image: MetadataImage,
    brokers: Candidates,
    leaders: LeaderCounts | None,
    taken: TakenNames,
    new: NewTopic,
) -> TopicImage:
    """Return the topic that would be created. Raises `KafkaError`; see `create_topics`."""
    if new.name in image.topics:
        # Kafka's text: programs search for it in a client's exception.
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic {new.name!r} already exists.")
    taken.check_new(new.name)
    validate(new.configs, metadata.current_config.log_config())
    return TopicImage(
        name=new.name,
        topic_id=metadata.randomness.uuid(),
        partitions=_new_partitions(image, brokers, _replicas(metadata, brokers, leaders, new)),
        configs={key: text for key, text in new.configs.items() if text is not None},
    )


def _replicas(metadata: Metadata, brokers: Candidates, leaders: LeaderCounts | None, new: NewTopic) -> list[list[int]]:
    if new.assignments:
        if new.partitions != DEFAULT or new.replication_factor != DEFAULT:
            what = "replication factor" if new.replication_factor != DEFAULT else "numPartitions"
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
        return place_as_assigned(new.assignments, brokers)
    config = metadata.config
    return place(
        config.num_partitions if new.partitions == DEFAULT else new.partitions,
        config.default_replication_factor if new.replication_factor == DEFAULT else new.replication_factor,
        brokers,
        leaders=leaders,
    )


def _new_replicas(
    topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None, brokers: Candidates
) -> list[list[int]]:
    present = len(topic.partitions)
    if count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase.",
        )
    replication_factor = len(topic.partitions[0].replicas)
    if assignments is None:
        return place(count - present, replication_factor, brokers, present)
    if len(assignments) != count - present:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {count - present} additional partition(s),"
            f" but only {len(assignments)} assignment(s) were specified.",
        )
    replicas = place_as_assigned(dict(enumerate(assignments, present)), brokers, present)
    if len(replicas[0]) != replication_factor:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the new partitions have {pluralize(len(replicas[0]), 'replica')},"
            f" those of the topic have {replication_factor}",
        )
    return replicas


def _new_partitions(image: MetadataImage, brokers: Candidates, replicas: Iterable[list[int]]) -> list[PartitionImage]:
    """Return new partitions: their live replicas are in sync, and the first of these leads."""
    epochs = {node_id: image.brokers[node_id].epoch for node_id in brokers.live}
    partitions = []
    for each in replicas:
        isr = {replica: epochs[replica] for replica in each if replica in epochs}
        partitions.append(PartitionImage(next(iter(isr)), leader_epoch=0, replicas=each, isr=isr, partition_epoch=0))
    return partitions

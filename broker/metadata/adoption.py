"""Topics that are in the log directories but not in the metadata: those of an Apache Kafka that a user moves away from.

When the first broker of a cluster starts for the first time, it looks at what partitions its log directories hold, and
makes topics of them before it serves:

| of the topic | is taken from |
|---|---|
| name, partitions | the names of the directories; where one is missing between others it begins empty |
| id | `partition.metadata`; a new one where there is none (before Kafka 2.8) |
| properties | `__cluster_metadata-0`, if Kafka's controller kept it here; those of internal topics are known anyway |
| leader epoch | one more than the last one in the log, so that clients notice that another broker leads |

Producer ids are handed out from 2^40 on, clear of those that Kafka has handed out and will: see `producer_id_blocks`.

Where the properties cannot be known, topics get the broker's defaults. The log warns of that, because it may be
dangerous: a compacted topic would lose records after a week. A topic whose partitions disagree about its id, or have
the id of another topic, is left alone, and so is one that Kafka's controller had deleted. A directory that holds no
segment is no partition, whatever its name is.

This is done once, and completely: `Metadata` writes `/adopting` together with the cluster record, and it is deleted
when all topics are there. So a start that was cut off is continued by the next one, and a directory that turns up later
is not taken for a topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from odradek.broker.config.topic_config import validate
from odradek.broker.metadata.image import PartitionImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import FIRST_ADOPTED, skip_to
from odradek.broker.metadata.store.store import Delete
from odradek.broker.metadata.topics import write_topic
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.offline.kraft_topics import KraftTopics
from odradek.broker.storage.opening.log_opening import ZERO_TOPIC_ID
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import KafkaError

_LOG = StructuredLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
INTERNAL_TOPIC_CONFIGS: Mapping[str, dict[str, str]] = {
    "__consumer_offsets": _COMPACTED,
    "__transaction_state": _COMPACTED | {"compression.type": "uncompressed", "min.insync.replicas": "1"},
}
"""What Kafka's coordinators create their topics with, and what their records are lost without."""


async def adopt_if_due(
    metadata: Metadata, log_dirs: LogDirs, read_kraft_topics: Callable[[], Awaitable[KraftTopics | None]]
) -> None:
    """Make topics of the logs if that is still to be done, with what `read_kraft_topics` finds of Kafka's controller.

    Returns when the image shows them. With a directory offline that is left to a later start. Raises KafkaError
    KAFKA_STORAGE_ERROR.
    """
    if await metadata.read(metadata.keys.adopting) is None:
        return
    if log_dirs.offline:
        _LOG.warning("topics are not looked for while a log directory is offline", first=log_dirs.offline[0].path)
        await skip_to(metadata, FIRST_ADOPTED)  # the logs in there may remember others
        return
    await _adopt_topics(metadata, log_dirs.logs.values(), await read_kraft_topics())


async def _adopt_topics(metadata: Metadata, logs: Iterable[Log], kraft: KraftTopics | None) -> None:
    """Make topics of the logs; `kraft` is what Kafka's controller knew, None if nothing is known of it."""
    found: dict[str, list[Log]] = {}
    for log in logs:
        if not log.had_segments:
            _LOG.warning("partition left alone, its directory had no segment", topic=log.topic, partition=log.partition)
            continue
        found.setdefault(log.topic, []).append(log)
    for name, partitions in sorted(found.items()):
        if kraft is not None and name not in kraft.ids:
            _LOG.warning("topic left alone, Kafka had deleted it", topic=name)
        elif name not in metadata.image.topics:
            await _adopt(metadata, name, partitions, None if kraft is None else kraft.configs.get(name, {}))
    if found:
        _LOG.info("topics found in the log directories", count=len(found), first=min(found))
        if kraft is None:
            _LOG.warning("topics have the default properties, theirs are not known", count=len(found))
    if found or kraft is not None:
        await skip_to(metadata, FIRST_ADOPTED)
    await metadata.commit((), (Delete(metadata.keys.adopting),))


async def _adopt(metadata: Metadata, name: str, logs: list[Log], configs: Mapping[str, str] | None) -> None:
    ids = {log.topic_id for log in logs} - {ZERO_TOPIC_ID}
    if len(ids) > 1 or ids & metadata.image.topics_by_id.keys():
        _LOG.error("topic left alone, its partitions have ids of several or other topics", topic=name)
        return
    by_index = {log.partition: log for log in logs}
    count = max(by_index) + 1
    missing = [index for index in range(count) if index not in by_index]
    if missing:
        _LOG.warning("partitions not found begin empty", topic=name, count=len(missing), first=missing[0])
    topic = TopicImage(
        name=name,
        topic_id=ids.pop() if ids else metadata.randomness.uuid(),
        partitions=[_partition(metadata, by_index.get(index)) for index in range(count)],
        configs=_valid(metadata, name, configs),
    )
    await write_topic(metadata, topic, metadata.image.topic_configs.get(name, ({}, 0))[1])


def _partition(metadata: Metadata, log: Log | None) -> PartitionImage:
    node_id = metadata.config.node_id
    return PartitionImage(
        leader=node_id,
        leader_epoch=0 if log is None else log.latest_leader_epoch + 1,
        replicas=[node_id],
        isr={node_id: metadata.broker_epoch},
        partition_epoch=0,
    )


def _valid(metadata: Metadata, name: str, configs: Mapping[str, str] | None) -> dict[str, str]:
    """The properties that this broker takes; the others are named in the log."""
    defaults = metadata.current_config.log_config()
    valid = {}
    for key, value in (INTERNAL_TOPIC_CONFIGS.get(name, {}) if configs is None else configs).items():
        try:
            validate({key: value}, defaults)
        except KafkaError as error:
            _LOG.warning("property of a topic left out", topic=name, property=f"{key}={value}", reason=str(error))
        else:
            valid[key] = value
    return valid

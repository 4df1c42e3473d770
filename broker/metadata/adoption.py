"""The adoption of log directories that Apache Kafka has written: their partitions become topics.

When the first broker of a cluster starts for the first time, it creates topics for the partitions in its log
directories, before it serves clients:

| of the topic | source |
|---|---|
| name, partitions | the names of the directories; a missing partition between others begins empty |
| id | `partition.metadata`; a new one if that file is missing (before Kafka 2.8) |
| properties | `__cluster_metadata-0`, if Kafka's controller ran here; internal topics have fixed ones |
| leader epoch | one more than the last one in the log, so that clients see that another broker leads |

Producer ids are allocated from 2^40 on, above all that Kafka has allocated or will: see `producer_id_blocks`.

Without a source of properties, topics get the broker's defaults, and the log has a warning: retention would delete the
records of a compacted topic after a week.

Not adopted are a topic whose partitions have different ids, or the id of another topic; a topic that Kafka's controller
had deleted; a directory without a segment, whatever its name is.

In a store that several brokers share, `odradek metadata create-cluster` may name one of them in `/adopting`.

Adoption runs once, to the end: `Metadata` writes `/adopting` together with the cluster record, and the key is deleted
when all topics exist. So the next start continues an interrupted adoption, and no directory that appears later becomes
a topic.
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
"""The properties with which Kafka's coordinators create their topics. Without them their records would be lost."""


def adopter(node_id: int) -> bytes:
    """Return the value of `/adopting` that names one broker; an empty value names any."""
    return b"%d" % node_id


async def adopt_if_due(
    metadata: Metadata, log_dirs: LogDirs, read_kraft_topics: Callable[[], Awaitable[KraftTopics | None]]
) -> None:
    """Create topics for the logs unless that is done, with what `read_kraft_topics` returns of Kafka's controller.

    Returns when the image has them. With a directory offline, a later start adopts. Raises KafkaError
    KAFKA_STORAGE_ERROR.
    """
    due = await metadata.read(metadata.keys.adopting)
    if due is None or due.value not in (b"", adopter(metadata.config.node_id)):
        return
    if log_dirs.offline:
        _LOG.warning("topics not adopted while a log directory is offline", first=log_dirs.offline[0].path)
        await skip_to(metadata, FIRST_ADOPTED)  # the logs in there may contain others
        return
    await _adopt_topics(metadata, log_dirs.logs.values(), await read_kraft_topics())


async def _adopt_topics(metadata: Metadata, logs: Iterable[Log], kraft: KraftTopics | None) -> None:
    """Create topics for the logs; `kraft` has the topics of Kafka's controller, None if it left no log here."""
    found: dict[str, list[Log]] = {}
    for log in logs:
        if not log.had_segments:
            _LOG.warning("partition without a segment not adopted", topic=log.topic, partition=log.partition)
            continue
        found.setdefault(log.topic, []).append(log)
    for name, partitions in sorted(found.items()):
        if kraft is not None and name not in kraft.ids:
            _LOG.warning("topic not adopted, Kafka had deleted it", topic=name)
        elif name not in metadata.image.topics:
            await _adopt(metadata, name, partitions, None if kraft is None else kraft.configs.get(name, {}))
    if found:
        _LOG.info("topics adopted from the log directories", count=len(found), first=min(found))
        if kraft is None:
            _LOG.warning("adopted topics have default properties, their own are unknown", count=len(found))
    if found or kraft is not None:
        await skip_to(metadata, FIRST_ADOPTED)
    await metadata.commit((), (Delete(metadata.keys.adopting),))


async def _adopt(metadata: Metadata, name: str, logs: list[Log], configs: Mapping[str, str] | None) -> None:
    ids = {log.topic_id for log in logs} - {ZERO_TOPIC_ID}
    if len(ids) > 1 or ids & metadata.image.topics_by_id.keys():
        _LOG.error("topic not adopted, its partitions have ids of several or other topics", topic=name)
        return
    by_index = {log.partition: log for log in logs}
    count = max(by_index) + 1
    missing = [index for index in range(count) if index not in by_index]
    if missing:
        _LOG.warning("missing partitions begin empty", topic=name, count=len(missing), first=missing[0])
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
    """Return the properties that this broker accepts; log the others."""
    defaults = metadata.current_config.log_config()
    valid = {}
    for key, value in (INTERNAL_TOPIC_CONFIGS.get(name, {}) if configs is None else configs).items():
        try:
            validate({key: value}, defaults)
        except KafkaError as error:
            _LOG.warning("property of a topic not adopted", topic=name, property=f"{key}={value}", reason=str(error))
        else:
            valid[key] = value
    return valid

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

`__consumer_offsets` and `__transaction_state` are adopted together or not at all, because offsets of open transactions
wait for the end that only the transactions' coordinator writes. If the directories have no `__transaction_state`, the
broker logs which partitions have open transactions. If a coordinator's topic lacks partitions, it gets as many as it is
created with: the number decides which partition has a key.

In a store that several brokers share, `odradek metadata create-cluster` may name one of them in `/adopting`.

Adoption runs once, to the end: `Metadata` writes `/adopting` together with the cluster record, and the key is deleted
when all topics exist. So the next start continues an interrupted adoption, and no directory that appears later becomes
a topic.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from odradek.broker.config.topic_config import validate
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from odradek.broker.metadata.administration.topic_writes import PlannedTopic, write_topic
from odradek.broker.metadata.image import PartitionImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.producer_id_blocks import FIRST_ADOPTED, skip_to
from odradek.broker.metadata.store.store import Delete
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.offline.kraft_topics import KraftTopics
from odradek.broker.storage.opening.log_opening import ZERO_TOPIC_ID
from odradek.broker.structured_logging import StructuredLogger
from odradek.protocol.errors import KafkaError

_LOG = StructuredLogger(__name__)

_COMPACTED = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}
INTERNAL_TOPIC_CONFIGS: Mapping[str, dict[str, str]] = {
    CONSUMER_OFFSETS: _COMPACTED,
    TRANSACTION_STATE: _COMPACTED | {"compression.type": "uncompressed", "min.insync.replicas": "1"},
}
"""The properties with which Kafka's coordinators create their topics. Without them their records would be lost."""
_COORDINATORS_TOPICS = INTERNAL_TOPIC_CONFIGS.keys()


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
    await _adopt_topics(metadata, log_dirs.every_log(), await read_kraft_topics())


async def _adopt_topics(metadata: Metadata, logs: Iterable[Log], kraft: KraftTopics | None) -> None:
    """Create topics for the logs; `kraft` has the topics of Kafka's controller, None if it left no log here."""
    found: dict[str, list[Log]] = {}
    for log in logs:
        if not log.had_segments:
            _LOG.warning("partition without a segment not adopted", topic=log.topic, partition=log.partition)
            continue
        found.setdefault(log.topic, []).append(log)
    if kraft is not None:
        _drop_deleted(found, kraft)
    refused = _refused(metadata, found)
    for name, partitions in sorted(found.items()):
        if name not in metadata.image.topics and name not in refused:
            await _adopt(metadata, name, partitions, None if kraft is None else kraft.configs.get(name, {}))
    if TRANSACTION_STATE not in metadata.image.topics:
        _report_open_transactions([log for partitions in found.values() for log in partitions])
    if found:
        _LOG.info("topics adopted from the log directories", count=len(found), first=min(found))
        if kraft is None:
            _LOG.warning("adopted topics have default properties, their own are unknown", count=len(found))
    if found or kraft is not None:
        await skip_to(metadata, FIRST_ADOPTED)
    await metadata.commit((), (Delete(metadata.keys.adopting),))


def _drop_deleted(found: dict[str, list[Log]], kraft: KraftTopics) -> None:
    """Remove the logs of topics that Kafka's controller had deleted, also if it had created one of their name again."""
    for name in sorted(found):
        ids = (ZERO_TOPIC_ID, kraft.ids[name]) if name in kraft.ids else ()
        found[name] = [log for log in found[name] if log.topic_id in ids]
        if not found[name]:
            _LOG.warning("topic not adopted, Kafka had deleted it", topic=name)
            del found[name]


def _refused(metadata: Metadata, found: Mapping[str, list[Log]]) -> set[str]:
    """Return the topics that cannot be adopted; log them."""
    taken = {topic.topic_id: name for name, topic in metadata.image.topics.items()}
    refused = set()
    for name, logs in sorted(found.items()):
        ids = _ids(logs)
        if len(ids) > 1 or any(taken.get(topic_id, name) != name for topic_id in ids):
            _LOG.error("topic not adopted, its partitions have ids of several or other topics", topic=name)
            refused.add(name)
        else:
            taken.update(dict.fromkeys(ids, name))
    if not refused.isdisjoint(_COORDINATORS_TOPICS):
        for name in _COORDINATORS_TOPICS & found.keys() - refused:
            _LOG.error("topic not adopted, because the other topic of transactions is not", topic=name)
            refused.add(name)
    return refused


def _report_open_transactions(logs: list[Log]) -> None:
    """Log which partitions have transactions that no coordinator will end."""
    open_ = sorted(f"{log.topic}-{log.partition}" for log in logs if log.producers.first_unstable_offset is not None)
    if open_:
        reason = f"{TRANSACTION_STATE} is missing: abort them, as kafka-transactions.sh does"
        _LOG.warning("open transactions have no coordinator", partitions=len(open_), first=open_[0], reason=reason)


def _ids(logs: Iterable[Log]) -> set[bytes]:
    return {log.topic_id for log in logs} - {ZERO_TOPIC_ID}


async def _adopt(metadata: Metadata, name: str, logs: list[Log], configs: Mapping[str, str] | None) -> None:
    ids = _ids(logs)
    by_index = {log.partition: log for log in logs}
    count = max(by_index) + 1
    missing = [index for index in range(count) if index not in by_index]
    if missing:
        _LOG.warning("missing partitions begin empty", topic=name, count=len(missing), first=missing[0])
        count = max(count, _created_partitions(metadata, name))
    topic = TopicImage(
        name=name,
        topic_id=ids.pop() if ids else metadata.randomness.uuid(),
        partitions=[_partition(metadata, by_index.get(index)) for index in range(count)],
        configs=_valid(metadata, name, configs),
    )
    await write_topic(metadata, PlannedTopic(topic, metadata.image.topic_configs.get(name, ({}, 0))[1]))


def _created_partitions(metadata: Metadata, name: str) -> int:
    """Return the number of partitions with which a coordinator creates its topic; 0 for other topics."""
    config = metadata.config
    created = {
        CONSUMER_OFFSETS: config.offsets_topic_num_partitions,
        TRANSACTION_STATE: config.transaction_state_log_num_partitions,
    }
    return created.get(name, 0)


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

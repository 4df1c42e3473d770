"""An internal topic: its name, properties and records, the partition of a key, and its creation.

A key belongs to the partition that its hash code (Java's, over UTF-16) gives, and is coordinated by the leader of that
partition. The first client that looks for a coordinator creates the topic.

# Differs from Kafka: a single node gives the topic one replica, because with the default of three it could have no
groups otherwise; Kafka refuses to create the topic then, and so does a cluster. The workers of a single machine,
without etcd, count as a single node, unless `workers.count.as.brokers` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import msgspec

from odradek.broker.coordinator.runtime.events import ProducerIdAndEpoch
from odradek.broker.coordinator.runtime.records import CoordinatorRecord, decode_record, encode_record
from odradek.broker.metadata.administration.topic_writes import Report, no_report
from odradek.broker.metadata.administration.topics import create_topic
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.stored_records.record_types import StoredRecord

_INT32 = 1 << 32
_MIN_INSYNC_REPLICAS = "min.insync.replicas"
_CACHED_KEYS = 4096
"""A transaction looks for its partition six times, at 2 µs for an id of 11 characters and 5 µs for one of 36."""


@lru_cache(_CACHED_KEYS)
def partition_of(key: str, partitions_count: int) -> int:
    """Return the partition that has the records of this key: Kafka's `Utils.abs(key.hashCode()) % partitions`."""
    units = key.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) % _INT32
    signed = code - _INT32 if code >= _INT32 // 2 else code
    # The smallest number has no positive counterpart in Java; Kafka takes 0 for it.
    return 0 if code == _INT32 // 2 else abs(signed) % partitions_count


class InternalTopic(msgspec.Struct, frozen=True):
    """The topic of one coordinator.

    `record_types` are those that its records are decoded by. `base_sequence` and `codec` are those of its batches.
    `last_record_counts`: a record replaces everything that earlier ones with its key said, and none has a producer.
    `append_timeout_ms` is how long an append may wait for replicas, `load_buffer_bytes` how much is read at a time.
    """

    name: str
    record_types: Mapping[int, StoredRecord]
    partitions_count: int
    replication_factor: int
    configs: dict[str, str | None]
    base_sequence: int = -1
    codec: Codec = Codec.NONE
    last_record_counts: bool = False
    append_timeout_ms: int = 5000
    load_buffer_bytes: int = 5 * 1024 * 1024
    partition_of: Callable[[str, int], int] = partition_of

    def build_batch(
        self, records: Sequence[CoordinatorRecord], now_ms: int, producer: ProducerIdAndEpoch | None = None
    ) -> bytearray:
        """Return the records as one batch, of the producer's transaction if there is a producer.

        Raises LocalProtocolError if a record cannot be encoded.
        """
        builder = BatchBuilder(self.codec, base_sequence=self.base_sequence, is_transactional=producer is not None)
        if producer is not None:
            builder.producer_id, builder.producer_epoch = producer
        for record in records:
            builder.append(now_ms, *encode_record(record))
        return builder.build()

    def decode(self, key: bytes | None, value: bytes | None) -> CoordinatorRecord | None:
        """Return the record, or None if its type is not known. Raises MalformedRecordError."""
        return decode_record(self.record_types, key, value)

    async def ensure_exists(self, metadata: Metadata, report: Report = no_report) -> TopicImage:
        """Return the topic, after creating it if it does not exist. Raises KafkaError."""
        topic = metadata.image.topics.get(self.name)
        if topic is not None:
            return topic
        replicas = self.replication_factor
        if not metadata.is_shared:  # else the first client of a starting cluster would fix it at one replica
            replicas = min(replicas, len(metadata.image.brokers))
        elif _is_one_machine(metadata):
            if len(metadata.image.brokers) < metadata.config.num_workers:  # else those that start last would have none
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not all workers of the machine serve yet")
            replicas = 1
        configs = dict(self.configs)
        least_in_sync = configs.get(_MIN_INSYNC_REPLICAS)
        if least_in_sync is not None:  # else nothing could be written to a topic with fewer replicas
            configs[_MIN_INSYNC_REPLICAS] = str(min(int(least_in_sync), replicas))
        try:
            return await create_topic(
                metadata, self.name, self.partitions_count, replicas, configs=configs, report=report
            )
        except KafkaError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # another client created it meanwhile
                raise
            return metadata.image.topics[self.name]


def _is_one_machine(metadata: Metadata) -> bool:
    """Return whether the cluster has the workers of one machine alone, and can have no other brokers.

    With etcd it may get others: see the comment above.
    """
    config, image = metadata.config, metadata.image
    if config.workers_count_as_brokers or config.metadata_etcd_endpoints:
        return False
    hosts = {image.host_of(node_id) for node_id in (*image.known, *image.registered)}
    return len(hosts) == 1 and "" not in hosts

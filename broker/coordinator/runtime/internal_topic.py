"""`__consumer_offsets`: which partition a group's records are in, how the topic comes into being, what is appended.

A group belongs to the partition that its id's hash code (Java's, over UTF-16) says, and is coordinated by the leader of
that partition. The topic is created by the first client that looks for a coordinator: compacted, with
offsets.topic.num.partitions, offsets.topic.replication.factor and offsets.topic.segment.bytes.

# Differs from Kafka: of offsets.topic.replication.factor no more than there are brokers, because a single broker whose
default is three could else have no groups at all; Kafka refuses to create the topic then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.records import CoordinatorRecord, encode_record
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.topic_names import CONSUMER_OFFSETS
from odradek.broker.metadata.topics import create_topic
from odradek.broker.purgatory import DelayedOperation, Purgatory
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import ErrorCode, KafkaError, LocalProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder

if TYPE_CHECKING:
    from odradek.broker.replication.partition import Partition

_ACKS_ALL = -1
_INT32 = 1 << 32


def partition_of(group_id: str, partitions_count: int) -> int:
    """The partition whose records a group's are."""
    units = group_id.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) % _INT32
    signed = code - _INT32 if code >= _INT32 // 2 else code
    # Java has no positive counterpart of the smallest number, and Kafka takes 0 for it.
    return 0 if code == _INT32 // 2 else abs(signed) % partitions_count


async def ensure_topic(metadata: Metadata) -> TopicImage:
    """Return the topic, created if need be. Raises KafkaError."""
    topic = metadata.image.topics.get(CONSUMER_OFFSETS)
    if topic is not None:
        return topic
    config = metadata.config
    replicas = min(config.offsets_topic_replication_factor, len(metadata.image.brokers))
    configs: dict[str, str | None] = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }
    try:
        return await create_topic(
            metadata, CONSUMER_OFFSETS, config.offsets_topic_num_partitions, replicas, configs=configs
        )
    except KafkaError as error:
        if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:  # by another client, just now
            raise
        return metadata.image.topics[CONSUMER_OFFSETS]


def build_batch(records: Sequence[CoordinatorRecord], now_ms: int, codec: Codec = Codec.NONE) -> bytearray:
    """The records as one batch, in every byte as Kafka's coordinators build it: sequence 0 though nobody counts."""
    builder = BatchBuilder(codec, base_sequence=0)
    for record in records:
        builder.append(now_ms, *encode_record(record))
    return builder.build()


class CoordinatorLog:
    """Appends records to one partition of the topic, in the leader epoch in which it was loaded."""

    def __init__(
        self,
        partition: Partition,
        config: BrokerConfig,
        clock: Clock,
        purgatory: Purgatory[ErrorCode],
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._timeout_ms = config.offsets_commit_timeout_ms
        self._codec = Codec(config.offsets_topic_compression_codec)
        self._clock = clock
        self._purgatory = purgatory

    def append(self, records: Sequence[CoordinatorRecord]) -> int | asyncio.Future[int]:
        """Append them as one batch; the offset of the first, when all in-sync replicas have them, or a future of it.

        Raises KafkaError, from here or from the future, as a client of a coordinator is told it.
        """
        now_ms = self._clock.time_ms()
        partition = self.partition
        try:
            batch = memoryview(build_batch(records, now_ms, self._codec))
            partition.check_leader(self.leader_epoch)
            appended = partition.append_as_leader(batch, _ACKS_ALL, now_ms)
            if not isinstance(appended, AppendInfo):
                return asyncio.ensure_future(self._wait_for_append(appended))
            if self._acknowledged(appended):
                return appended.base_offset
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        except LocalProtocolError as error:  # an id that was not UTF-8 is longer than a record can hold
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return asyncio.ensure_future(self._wait_for_replicas(appended))

    async def _wait_for_append(self, append: asyncio.Future[AppendInfo]) -> int:
        try:
            info = await append
            if self._acknowledged(info):
                return info.base_offset
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        return await self._wait_for_replicas(info)

    async def _wait_for_replicas(self, info: AppendInfo) -> int:
        delayed = _DelayedAppend(self, info)
        code = await self._purgatory.park(delayed, (self.partition,), self._timeout_ms)
        if code is not ErrorCode.NONE:
            raise as_coordinator_error(KafkaError(code, f"{self.partition} could not be replicated"))
        return info.base_offset

    def _acknowledged(self, info: AppendInfo) -> bool:
        code = self.acknowledgement(info)
        if code is not None and code is not ErrorCode.NONE:
            raise KafkaError(code, f"{self.partition} could not be replicated")
        return code is not None

    def acknowledgement(self, info: AppendInfo) -> ErrorCode | None:
        """As `Partition.acknowledgement`."""
        return self.partition.acknowledgement(info.last_offset + 1, self.leader_epoch)


class _DelayedAppend(DelayedOperation[ErrorCode]):
    """An append that waits for the other in-sync replicas."""

    def __init__(self, log: CoordinatorLog, info: AppendInfo) -> None:
        self._log = log
        self._info = info

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - there is one key
        return self._log.acknowledgement(self._info) is not None

    def answer(self) -> ErrorCode:
        code = self._log.acknowledgement(self._info)
        return ErrorCode.REQUEST_TIMED_OUT if code is None else code


_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """What a client of a coordinator is told when its records cannot be written.

    Kafka's `CoordinatorOperationExceptionHelper` is the model.
    """
    return KafkaError(_COORDINATOR_ERRORS.get(error.code, error.code), error.detail)

"""The values that go in and out: where a record lies, what became of one that was sent, one that was read."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from odradek.protocol.records.batch_header import TimestampType
from odradek.protocol.records.record_headers import Header


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


Partition = TopicPartition | tuple[str, int]
"""A partition as an argument: any pair of topic and index."""

AnyPartition = TypeVar("AnyPartition", bound=tuple[str, int])
"""The same as the key of a mapping."""


class RecordMetadata(NamedTuple):
    """Where a sent record was written.

    `offset` is -1 where the broker did not say: with acks=0, or when a repeated batch turned out to be in the log since
    long. `timestamp` (ms) is the record's, or the broker's where the topic has log append time.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class ConsumerRecord(msgspec.Struct, frozen=True, gc=False):
    """A record as it was read; `value` is None in tombstones.

    A struct, because one is made of every record: 0.1 µs, where a named tuple takes 0.25 and wakes the garbage
    collector, which looked at every tuple again and took a seventh of a consumer's time.

    `timestamp` (ms) is the sender's, or the broker's where `timestamp_type` is LOG_APPEND_TIME; in records of the
    oldest format it is -1 and the type None. `leader_epoch` is that of the leader who wrote the record, -1 if unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp_type: TimestampType | None = TimestampType.CREATE_TIME
    leader_epoch: int = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record of a partition at or after a time: its offset and timestamp (ms)."""

    offset: int
    timestamp: int
    leader_epoch: int


class CommittedOffset(msgspec.Struct, frozen=True):
    """An offset that a group committed: of the next record to read. `leader_epoch` is -1 where it is not known."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""

"""Appends to one partition of an internal topic, which end when they are committed: below the high watermark.

An append has no time limit. Its requester may give up earlier, but the records stay in the log, and count as soon as
they are committed. It fails only if it was refused, or if the partition is no longer led in the same epoch: then the
next leader's log decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from odradek.broker.clock import Clock
from odradek.broker.coordinator.runtime.events import ProducerIdAndEpoch
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.purgatory import DelayedOperation, Purgatory
from odradek.broker.replication.transaction_markers import TransactionMarker, append_marker
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.producers.verification_state import Verification
from odradek.protocol.errors import ErrorCode, KafkaError, LocalProtocolError

if TYPE_CHECKING:
    from odradek.broker.replication.partition import Partition

_ACKS_ALL = -1
_LONG_MS = 1 << 30  # 12 days; then it waits again


class PartitionWriter:
    """Appends records to one partition, in the leader epoch in which it was loaded."""

    def __init__(self, partition: Partition, topic: InternalTopic, clock: Clock, purgatory: Purgatory[bool]) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._topic = topic
        self._clock = clock
        self._purgatory = purgatory

    @property
    def is_fenced(self) -> bool:
        """Whether another broker may lead the partition by now."""
        return self.partition.is_fenced

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        producer: ProducerIdAndEpoch | None = None,
        verification: Verification | None = None,
    ) -> int | asyncio.Future[int]:
        """Append the records as one batch, of the producer's transaction if there is a producer.

        Return the offset of the first record when the batch is committed, or a future of it if that takes longer.
        Batches and markers are in the log in the order of the calls. Raises KafkaError with a code for clients of a
        coordinator, from here or from the future.
        """
        now_ms = self._clock.time_ms()
        return self._append(lambda: self._append_batch(records, producer, verification, now_ms))

    def append_marker(self, marker: TransactionMarker) -> int | asyncio.Future[int]:
        """Append a marker; everything else is as of `append`."""
        return self._append(lambda: append_marker(self.partition, marker, self._clock.time_ms()))

    def _append_batch(
        self,
        records: Sequence[CoordinatorRecord],
        producer: ProducerIdAndEpoch | None,
        verification: Verification | None,
        now_ms: int,
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        batch = memoryview(self._topic.build_batch(records, now_ms, producer))
        return self.partition.append_as_leader(batch, _ACKS_ALL, now_ms, Origin.COORDINATOR, verification=verification)

    def _append(self, append: Callable[[], AppendInfo | asyncio.Future[AppendInfo]]) -> int | asyncio.Future[int]:
        try:
            self.partition.check_leader(self.leader_epoch)
            appended = append()
            if not isinstance(appended, AppendInfo):
                return asyncio.ensure_future(self._wait_for_append(appended))
            if self._is_committed(appended.last_offset + 1):
                return appended.base_offset
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        except LocalProtocolError as error:  # an id that was not UTF-8 became longer than a record's field can be
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return asyncio.ensure_future(self._wait_for_replicas(appended))

    async def committed(self, end_offset: int) -> None:
        """Return when everything below `end_offset` is committed.

        Raises KafkaError NOT_COORDINATOR if the partition is no longer led in the same epoch, or its disk has failed;
        COORDINATOR_NOT_AVAILABLE when the broker stops.
        """
        try:
            while not (committed := self._is_committed(end_offset)):
                delayed = _DelayedCommit(self, end_offset)
                if not await self._purgatory.park(delayed, (self.partition,), _LONG_MS):
                    committed = self._is_committed(end_offset)
                    break
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        if not committed:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.partition} is not replicated")

    async def _wait_for_append(self, append: asyncio.Future[AppendInfo]) -> int:
        try:
            info = await append
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        return await self._wait_for_replicas(info)

    async def _wait_for_replicas(self, info: AppendInfo) -> int:
        await self.committed(info.last_offset + 1)
        return info.base_offset

    def _is_committed(self, end_offset: int) -> bool:
        """Raises KafkaError as `Partition.check_leader`."""
        self.partition.check_leader(self.leader_epoch)
        return self.partition.high_watermark >= end_offset

    def is_decided(self, end_offset: int) -> bool:
        """Return whether `committed` would return or raise now."""
        try:
            return self._is_committed(end_offset)
        except KafkaError:
            return True


class _DelayedCommit(DelayedOperation[bool]):
    """Waits until the high watermark reaches an offset. The answer is False if it has not when the broker stops."""

    def __init__(self, writer: PartitionWriter, end_offset: int) -> None:
        self._writer = writer
        self._end_offset = end_offset

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - there is one key
        return self._writer.is_decided(self._end_offset)

    def answer(self) -> bool:
        return self._writer.is_decided(self._end_offset)


_COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,  # retried without looking for another
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Codes for clients of a coordinator, by the code of an append or of a verification of the producer's transaction.

Source: `CoordinatorOperationExceptionHelper`.
"""


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """Return the error of an append with the code that a client of a coordinator gets."""
    return KafkaError(_COORDINATOR_ERRORS.get(error.code, error.code), error.detail)

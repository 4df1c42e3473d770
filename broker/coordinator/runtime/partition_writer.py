"""Appends to one partition of an internal topic, acknowledged by all in-sync replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from odradek.broker.clock import Clock
from odradek.broker.coordinator.runtime.internal_topic import InternalTopic
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.purgatory import DelayedOperation, Purgatory
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.protocol.errors import ErrorCode, KafkaError, LocalProtocolError

if TYPE_CHECKING:
    from odradek.broker.replication.partition import Partition

_ACKS_ALL = -1


class PartitionWriter:
    """Appends records to one partition, in the leader epoch in which it was loaded."""

    def __init__(
        self, partition: Partition, topic: InternalTopic, clock: Clock, purgatory: Purgatory[ErrorCode]
    ) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._topic = topic
        self._clock = clock
        self._purgatory = purgatory

    def append(self, records: Sequence[CoordinatorRecord]) -> int | asyncio.Future[int]:
        """Append the records as one batch. Return the offset of the first when all in-sync replicas have them.

        The offset is a future if that takes longer. Batches are in the log in the order of the calls. Raises
        KafkaError with a code for clients of a coordinator, from here or from the future.
        """
        now_ms = self._clock.time_ms()
        partition = self.partition
        try:
            batch = memoryview(self._topic.build_batch(records, now_ms))
            partition.check_leader(self.leader_epoch)
            appended = partition.append_as_leader(batch, _ACKS_ALL, now_ms)
            if not isinstance(appended, AppendInfo):
                return asyncio.ensure_future(self._wait_for_append(appended))
            if self._is_acknowledged(appended):
                return appended.base_offset
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        except LocalProtocolError as error:  # an id that was not UTF-8 became longer than a record's field can be
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
        return asyncio.ensure_future(self._wait_for_replicas(appended))

    async def _wait_for_append(self, append: asyncio.Future[AppendInfo]) -> int:
        try:
            info = await append
            if self._is_acknowledged(info):
                return info.base_offset
        except KafkaError as error:
            raise as_coordinator_error(error) from error
        return await self._wait_for_replicas(info)

    async def _wait_for_replicas(self, info: AppendInfo) -> int:
        delayed = _DelayedAppend(self, info)
        code = await self._purgatory.park(delayed, (self.partition,), self._topic.append_timeout_ms)
        if code is not ErrorCode.NONE:
            raise as_coordinator_error(KafkaError(code, f"{self.partition} could not be replicated"))
        return info.base_offset

    def _is_acknowledged(self, info: AppendInfo) -> bool:
        code = self.acknowledgement(info)
        if code is not None and code is not ErrorCode.NONE:
            raise KafkaError(code, f"{self.partition} could not be replicated")
        return code is not None

    def acknowledgement(self, info: AppendInfo) -> ErrorCode | None:
        """As `Partition.acknowledgement`: an error or NONE, or None as long as replicas are missing."""
        return self.partition.acknowledgement(info.last_offset + 1, self.leader_epoch)


class _DelayedAppend(DelayedOperation[ErrorCode]):
    """An append that waits for the other in-sync replicas."""

    def __init__(self, writer: PartitionWriter, info: AppendInfo) -> None:
        self._writer = writer
        self._info = info

    def is_ready(self, key: Hashable) -> bool:  # noqa: ARG002 - there is one key
        return self._writer.acknowledgement(self._info) is not None

    def answer(self) -> ErrorCode:
        code = self._writer.acknowledgement(self._info)
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
"""Codes for clients of a coordinator, by the code of an append. Source: `CoordinatorOperationExceptionHelper`."""


def as_coordinator_error(error: KafkaError) -> KafkaError:
    """Return the error of an append with the code that a client of a coordinator gets."""
    return KafkaError(_COORDINATOR_ERRORS.get(error.code, error.code), error.detail)

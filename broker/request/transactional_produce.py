"""The transactional batches of a Produce request: their producer, and the verification of their partitions.

```
begin ─┬─ the transaction is open in every partition, or verification is off ─► append
       └─ else TransactionVerifier.verify ─┬─ coordinator here ───► append, in the same turn
                                           └─ it takes longer ────► finish ─► append
```
A partition that this broker does not lead, or that the client may not write to, is not verified: its append fails.
Where a newer epoch of the producer is known, the partition is INVALID_PRODUCER_EPOCH. From Produce 12 on (KIP-890,
transactions of version 2) the coordinator adds the partition, before that it checks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from odradek.broker.coordinator.transactions.transaction import TopicPartition
from odradek.broker.coordinator.transactions.transaction_coordinator import PartitionErrors
from odradek.broker.coordinator.transactions.verification import (
    FIRST_PRODUCE_THAT_ADDS,
    produce_error,
)
from odradek.broker.metadata.administration.topic_names import INTERNAL_TOPICS
from odradek.broker.replication.partition import Partition
from odradek.broker.request.services import Services
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.append.origin import Origin
from odradek.broker.storage.producers.verification_state import IN_TRANSACTION, Verification
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.messages.produce import FIRST_VERSION_WITH_TOPIC_IDS, ProduceRequest, TopicProduceData
from odradek.protocol.records.batch_header import BatchHeader, read_batch_header


class _Batch(NamedTuple):
    partition: Partition
    header: BatchHeader


class TransactionalProduce:
    """The verification of one request. Call `begin`, and `finish` if it returns an awaitable; then `append`."""

    __slots__ = (
        "_errors",
        "_is_refused",
        "_request",
        "_services",
        "_transaction_version",
        "_verifications",
        "_version",
    )

    def __init__(
        self,
        services: Services,
        request: ProduceRequest,
        version: int,
        is_refused: Callable[[TopicProduceData], bool] | None = None,
    ) -> None:
        """`is_refused` returns whether the client may not write to a topic."""
        self._services = services
        self._is_refused = is_refused
        self._request = request
        self._version = version
        self._verifications: dict[TopicPartition, Verification] = {}
        self._errors: dict[TopicPartition, KafkaError | None] = {}
        self._transaction_version = 2 if version >= FIRST_PRODUCE_THAT_ADDS else 0

    def begin(self, now_ms: int) -> Awaitable[PartitionErrors] | None:
        """Verify the partitions. Returns an awaitable for `finish` if it takes longer.

        Raises KafkaError for the request as a whole: TRANSACTIONAL_ID_AUTHORIZATION_FAILED without a transactional id,
        INVALID_PRODUCER_ID_MAPPING for batches of several producers.
        """
        batches = self._batches()
        transactional_id = self._request.transactional_id
        producers = {(batch.header.producer_id, batch.header.producer_epoch) for batch in batches}
        if not producers:
            return None
        if len(producers) > 1:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                "Transactional records contained more than one producer ID",
            )
        verifier = self._services.transaction_verifier
        adds = self._version >= FIRST_PRODUCE_THAT_ADDS
        if transactional_id is None or not (adds or verifier.is_enabled):
            return None
        unverified = self._begin_verifications(batches, now_ms)
        if not unverified:
            return None
        [(producer_id, producer_epoch)] = producers
        found = verifier.verify(
            transactional_id,
            producer_id,
            producer_epoch,
            unverified,
            lambda: self._begin_verifications_again(batches),
            adds=adds,
        )
        if not isinstance(found, Mapping):
            return found
        self._errors = {**found, **self._errors}
        return None

    def _begin_verifications(self, batches: list[_Batch], now_ms: int) -> list[TopicPartition]:
        """Begin to verify the batches that may be appended here; return the partitions without an open transaction."""
        unverified = []
        for partition, header in batches:
            if not partition.is_leader or partition.topic in INTERNAL_TOPICS:
                continue
            key = partition.topic, partition.index
            try:
                begun = partition.log.producers.begin_verification(
                    header.producer_id, header.producer_epoch, header.base_sequence, now_ms
                )
            except KafkaError as error:
                self._errors[key] = error.fresh()
                continue
            self._verifications[key] = IN_TRANSACTION if begun is None else begun
            if begun is not None:
                unverified.append(key)
        return unverified

    def _begin_verifications_again(self, batches: list[_Batch]) -> None:
        self._begin_verifications(batches, self._services.clock.time_ms())

    async def finish(self, found: Awaitable[PartitionErrors]) -> None:
        """Wait for the answer that `begin` has returned."""
        errors = await found
        self._errors = {**errors, **self._errors}

    def error_of(self, partition: Partition) -> KafkaError | None:
        """Return the error of the partition's verification."""
        error = self._errors.get((partition.topic, partition.index))
        return None if error is None else produce_error(error, self._version)

    def append(
        self, partition: Partition, records: memoryview, acks: int, now_ms: int
    ) -> AppendInfo | asyncio.Future[AppendInfo]:
        """Append one batch of a partition without an error, as `Partition.append_as_leader`."""
        verification = self._verifications.get((partition.topic, partition.index))
        version = self._transaction_version if verification is not None else 0
        return partition.append_as_leader(records, acks, now_ms, Origin.CLIENT, version, verification)

    def _batches(self) -> list[_Batch]:
        """The transactional batches with a producer, each with its partition.

        Raises KafkaError if there are any and the request has no transactional id. An append reports all other faults.
        """
        partitions = self._services.partitions
        found = []
        for topic in self._request.topic_data:
            is_refused = self._is_refused is not None and self._is_refused(topic)
            for data in topic.partition_data:
                header = _transactional_header(data.records)
                if header is None:
                    continue
                if self._request.transactional_id is None:
                    raise KafkaError(
                        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                        "transactional records need a transactional id in the request",
                    )
                if is_refused:
                    continue
                if self._version >= FIRST_VERSION_WITH_TOPIC_IDS:
                    partition = partitions.find_by_id(topic.topic_id, data.index)
                else:
                    partition = partitions.find(topic.name, data.index)
                if header.producer_id >= 0 and isinstance(partition, Partition):
                    found.append(_Batch(partition, header))
        return found


def _transactional_header(records: memoryview | None) -> BatchHeader | None:
    """The header of the first batch of a row if it is transactional; None also for what is no batch."""
    if not records:
        return None
    try:
        header = read_batch_header(records)
    except RemoteProtocolError:
        return None
    return header if header.is_transactional else None

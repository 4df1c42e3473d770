"""The verification that partitions belong to a transaction, before the first batch of it is appended (KIP-890).

```
Produce, TxnOffsetCommit ─► verify ─┬─ coordinator here ─────► TransactionCoordinator.add_partitions, in the same turn
                                    └─ another broker ───────► AddPartitionsToTxn 4+
```
Clients of version 1 have added the partition before; the coordinator only checks it. For those of version 2 the
coordinator adds it. Without this, a delayed batch could open a transaction that nothing ends.

| error of the coordinator | Produce | TxnOffsetCommit |
|---|---|---|
| not in the transaction | TRANSACTION_ABORTABLE from 11 on, else INVALID_TXN_STATE | from 4 on |
| PRODUCER_FENCED | INVALID_PRODUCER_EPOCH | INVALID_PRODUCER_EPOCH |
| no coordinator, loading, not reached | NOT_ENOUGH_REPLICAS, which every producer retries | see its handler |
| CONCURRENT_TRANSACTIONS | from 12 on retried here for a while, else NOT_ENOUGH_REPLICAS | from 5 on retried here |
| any other | the same | the same |

A client of version 2 begins the next transaction without waiting for the markers of the last one, so that it meets
CONCURRENT_TRANSACTIONS as a rule. The broker tries again every add.partitions.to.txn.retry.backoff.ms, for at most
add.partitions.to.txn.retry.backoff.max.ms, which is faster than a client. Kafka's `AddPartitionsToTxnManager` and
`ReplicaManager` are the model. The last transaction's marker may come between two tries, and ends the partition's
verification (`storage.producers.verification_state`): so each try begins with a new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from odradek.broker.clock import Clock
from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.transactions.other_brokers import OtherBrokers
from odradek.broker.coordinator.transactions.transaction import TopicPartition
from odradek.broker.coordinator.transactions.transaction_coordinator import PartitionErrors, TransactionCoordinator
from odradek.broker.metrics.counts.transactions import TransactionCounts
from odradek.broker.waiting import sleep
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

FIRST_PRODUCE_THAT_ADDS: Final = 12
FIRST_PRODUCE_WITH_ABORTABLE: Final = 11

_NO_NODE: Final = -1
_CODES: Final = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ErrorCode.INVALID_TXN_STATE,
}
_UNVERIFIED: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class TransactionVerifier:
    """Verifies partitions for the transactions of other brokers' coordinators and of this one's.

    `counts.verified` has the time of each verification, `counts.verification_failures` counts refused partitions.
    """

    def __init__(
        self,
        node_id: int,
        coordinator: TransactionCoordinator,
        other_brokers: OtherBrokers | None,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        counts: TransactionCounts,
    ) -> None:
        """`other_brokers`: None for a broker that is alone."""
        self._node_id = node_id
        self._coordinator = coordinator
        self._other_brokers = other_brokers
        self._config = config
        self._clock = clock
        self._counts = counts

    @property
    def is_enabled(self) -> bool:
        """Whether clients of version 1 are verified; those of version 2 always add their partitions."""
        return self._config().transaction_partition_verification_enable

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        begin_again: Callable[[], None],
        *,
        adds: bool,
    ) -> PartitionErrors | Awaitable[PartitionErrors]:
        """Add the partitions to the transaction, or check that they are in it. Returns the error of each, or None.

        The answer is an awaitable if it takes longer. Only clients of version 2 (`adds`) are retried; `begin_again`
        begins the verifications of all the partitions, and is called before each retry.
        """
        found = self._ask(transactional_id, producer_id, producer_epoch, partitions, adds=adds)
        if isinstance(found, Mapping) and not (adds and _is_concurrent(found)):
            self._counts.verified.record_none(1)
            return self._counted(found)
        return self._retry(found, transactional_id, producer_id, producer_epoch, partitions, begin_again, adds=adds)

    async def _retry(
        self,
        found: PartitionErrors | Awaitable[PartitionErrors],
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        begin_again: Callable[[], None],
        *,
        adds: bool,
    ) -> PartitionErrors:
        begin = self._clock.monotonic()
        config = self._config()
        deadline = begin + config.add_partitions_to_txn_retry_backoff_max_ms / 1000
        errors = found if isinstance(found, Mapping) else await found
        while adds and _is_concurrent(errors) and self._clock.monotonic() < deadline:
            await sleep(self._clock, config.add_partitions_to_txn_retry_backoff_ms / 1000)
            begin_again()
            found = self._ask(transactional_id, producer_id, producer_epoch, partitions, adds=adds)
            errors = found if isinstance(found, Mapping) else await found
        self._counts.verified.record_all((self._clock.monotonic() - begin,))
        return self._counted(errors)

    def _ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        adds: bool,
    ) -> PartitionErrors | Awaitable[PartitionErrors]:
        if not transactional_id:
            return dict.fromkeys(partitions, KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty"))
        node = self._coordinator.coordinator_of(transactional_id)
        if node == _NO_NODE:
            error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no broker leads the coordinator's partition")
            return dict.fromkeys(partitions, error)
        if node == self._node_id or self._other_brokers is None:
            return self._coordinator.add_partitions(
                transactional_id, producer_id, producer_epoch, partitions, adds=adds
            )
        transaction = AddPartitionsToTxnTransaction(
            transactional_id, producer_id, producer_epoch, not adds, _by_topic(partitions)
        )
        return _ask_other(self._other_brokers, node, transaction, partitions)

    def _counted(self, errors: PartitionErrors) -> PartitionErrors:
        """Count the errors; return them with the codes for producers."""
        if not any(errors.values()):
            return errors
        self._counts.verification_failures += sum(1 for error in errors.values() if error is not None)
        return {partition: _for_producer(error) for partition, error in errors.items()}


def produce_error(error: KafkaError, version: int) -> KafkaError:
    """Return the error of `TransactionVerifier.verify` for a client of this version of Produce."""
    code = error.code
    if code in _UNVERIFIED or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < FIRST_PRODUCE_THAT_ADDS):
        return KafkaError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}",
        )
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < FIRST_PRODUCE_WITH_ABORTABLE:
        return KafkaError(ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction")
    return error


async def _ask_other(
    brokers: OtherBrokers, node: int, transaction: AddPartitionsToTxnTransaction, partitions: Sequence[TopicPartition]
) -> PartitionErrors:
    try:
        response = await brokers.add_partitions(node, AddPartitionsToTxnRequest([transaction]))
    except KafkaError as error:
        return dict.fromkeys(partitions, error)
    if response.error_code:
        return dict.fromkeys(partitions, _answered(response.error_code))
    found: dict[TopicPartition, KafkaError | None] = dict.fromkeys(
        partitions, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the coordinator's answer lacks the partition")
    )
    for result in response.results_by_transaction:
        for topic in result.topic_results:
            for row in topic.results_by_partition:
                code = row.partition_error_code
                found[topic.name, row.partition_index] = _answered(code) if code else None
    return found


def _answered(code: int) -> KafkaError:
    return KafkaError(ErrorCode(code), "the transaction coordinator refused the partition")


def _by_topic(partitions: Sequence[TopicPartition]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return [AddPartitionsToTxnTopic(topic, indexes) for topic, indexes in topics.items()]


def _is_concurrent(errors: PartitionErrors) -> bool:
    return any(error is not None and error.code is ErrorCode.CONCURRENT_TRANSACTIONS for error in errors.values())


def _for_producer(error: KafkaError | None) -> KafkaError | None:
    if error is None:
        return None
    code = _CODES.get(error.code)
    return error if code is None else KafkaError(code, error.detail)

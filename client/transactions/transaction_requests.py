"""The requests of a transactional producer: each is repeated until it is executed, refused, or its time is over.

| API | version 1 of the protocol | version 2 (KIP-890) |
|---|---|---|
| InitProducerId | up to 5, as 6 is for two-phase commit | the same |
| AddPartitionsToTxn | up to 3, as later versions are for brokers | not sent: Produce 12 adds the partition |
| AddOffsetsToTxn | any | not sent: TxnOffsetCommit 5 adds the group |
| TxnOffsetCommit | up to 4 | from 5 on |
| EndTxn | up to 4 | from 5 on, which returns the id and epoch of the next transaction |

| error | pause before the next attempt |
|---|---|
| CONCURRENT_TRANSACTIONS: the coordinator completes the transaction before | 20 ms, as in Kafka's client |
| another retriable error, no response | `retry_backoff_ms`, growing |
| NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE, no response | the same, and the coordinator is found again |

`TransactionState.lose_response` is called for each attempt that may have been executed: one without a response, or with
an error that is not in `_REFUSED`. COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR are not: Kafka's coordinator returns
them, too, if the append to its log was not replicated in time, and the next coordinator may find the record there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from odradek.client.config import ProducerConfig
from odradek.client.errors import BrokerError, ClientError, ClosedError, TimeLimitError, TransportError, broker_error
from odradek.client.network.backoff import Backoff
from odradek.client.network.cluster import Cluster
from odradek.client.network.coordinator import NOT_THE_COORDINATOR, Coordinator, KeyType
from odradek.client.record import CommittedOffset, GroupMetadata, TopicPartition
from odradek.client.transactions.transaction_state import TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from odradek.protocol.schema import LAST_VERSION, Message, spec

R = TypeVar("R", bound=Message)
ErrorOf = Callable[[R], tuple[int, str | None, int | None]]
"""Returns the error code of a response, and the topic and partition that have it."""

CONCURRENT_PAUSE_SECONDS = 0.02
"""The coordinator completes a transaction within milliseconds; Kafka's client waits as long."""

TRANSACTION_VERSION = "transaction.version"

_CURE_OF_ABORT = "It will be aborted: by the next transaction, or by the coordinator after transaction_timeout_ms"

_REFUSED = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""Errors that a coordinator returns only before it writes anything."""

_LAST_INIT_PRODUCER_ID = 5
_FIRST_WITH_EPOCH = 3  # InitProducerId with the present id and epoch
_LAST_ADD_PARTITIONS = 3
_LAST_OF_VERSION_1 = 4  # of TxnOffsetCommit and EndTxn


class TransactionRequests:
    """Sends the requests of one producer. `transaction_version` is the cluster's, as of the last response."""

    def __init__(self, config: ProducerConfig, cluster: Cluster, state: TransactionState) -> None:
        self.transaction_version = 0
        self._config = config
        self._cluster = cluster
        self._state = state
        self._coordinator = Coordinator(cluster, state.transactional_id, KeyType.TRANSACTIONAL_ID)
        self._groups: dict[str, Coordinator] = {}

    async def init_producer_id(self, timeout_ms: int) -> None:
        """Get an id and epoch, the next epoch if the producer has one. Raises ClientError."""
        state = self._state
        request = InitProducerIdRequest(
            state.transactional_id, self._config.transaction_timeout_ms, state.producer_id, state.producer_epoch
        )
        response = await self._send(
            self._coordinator,
            f"get a producer id for transactional id {state.transactional_id}",
            request,
            InitProducerIdResponse,
            lambda response: (response.error_code, None, None),
            timeout_ms,
            at_most=_LAST_INIT_PRODUCER_ID,
            at_least=_FIRST_WITH_EPOCH if state.producer_id >= 0 else 0,
        )
        state.identify(response.producer_id, response.producer_epoch)

    async def add_partitions(self, partitions: Collection[tuple[str, int]]) -> None:
        """Add partitions to the transaction (version 1). Raises ClientError."""
        state = self._state
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for name, index in partitions:
            topics.setdefault(name, AddPartitionsToTxnTopic(name, [])).partitions.append(index)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=state.transactional_id,
            v3_and_below_producer_id=state.producer_id,
            v3_and_below_producer_epoch=state.producer_epoch,
            v3_and_below_topics=list(topics.values()),
        )
        await self._send(
            self._coordinator,
            f"add partitions to a transaction of {state.transactional_id}",
            request,
            AddPartitionsToTxnResponse,
            _error_of_partitions,
            self._config.delivery_timeout_ms,
            at_most=_LAST_ADD_PARTITIONS,
        )

    async def add_offsets(self, group_id: str) -> None:
        """Add a group's offsets to the transaction (version 1). Raises ClientError."""
        state = self._state
        await self._send(
            self._coordinator,
            f"add group {group_id} to a transaction of {state.transactional_id}",
            AddOffsetsToTxnRequest(state.transactional_id, state.producer_id, state.producer_epoch, group_id),
            AddOffsetsToTxnResponse,
            lambda response: (response.error_code, None, None),
            self._config.max_block_ms,
        )

    async def commit_offsets(self, offsets: Mapping[TopicPartition, CommittedOffset], group: GroupMetadata) -> None:
        """Commit offsets of a group in the transaction. Raises ClientError."""
        state = self._state
        topics: dict[str, TxnOffsetCommitRequestTopic] = {}
        for (name, index), at in offsets.items():
            topic = topics.setdefault(name, TxnOffsetCommitRequestTopic(name, []))
            topic.partitions.append(TxnOffsetCommitRequestPartition(index, at.offset, at.leader_epoch, at.metadata))
        request = TxnOffsetCommitRequest(
            state.transactional_id,
            group.group_id,
            state.producer_id,
            state.producer_epoch,
            group.generation,
            group.member_id,
            group.instance_id,
            list(topics.values()),
        )
        coordinator = self._groups.get(group.group_id)
        if coordinator is None:
            coordinator = self._groups[group.group_id] = Coordinator(self._cluster, group.group_id)
        at_most, at_least = self._versions()
        await self._send(
            coordinator,
            f"commit offsets of group {group.group_id} in a transaction of {state.transactional_id}",
            request,
            TxnOffsetCommitResponse,
            _error_of_offsets,
            self._config.max_block_ms,
            at_most=at_most,
            at_least=at_least,
        )

    async def end(self, *, committed: bool) -> None:
        """Commit or abort the transaction; with version 2 continue with the epoch of the response. Raises ClientError.

        Repeat the call after a time limit: an end that has been executed already succeeds again.
        """
        state = self._state
        at_most, at_least = self._versions()
        response = await self._send(
            self._coordinator,
            f"{'commit' if committed else 'abort'} a transaction of {state.transactional_id}",
            EndTxnRequest(state.transactional_id, state.producer_id, state.producer_epoch, committed),
            EndTxnResponse,
            lambda response: (response.error_code, None, None),
            self._config.max_block_ms,
            at_most=at_most,
            at_least=at_least,
            cure="Repeat the call" if committed else _CURE_OF_ABORT,
        )
        if response.producer_id >= 0:
            state.identify(response.producer_id, response.producer_epoch)

    def _versions(self) -> tuple[int, int]:
        """The last and the first version of TxnOffsetCommit and EndTxn to use."""
        return (LAST_VERSION, _LAST_OF_VERSION_1 + 1) if self._state.uses_version_2 else (_LAST_OF_VERSION_1, 0)

    async def _send(
        self,
        coordinator: Coordinator,
        tried: str,
        request: Message,
        response: type[R],
        error_of: ErrorOf[R],
        timeout_ms: int,
        *,
        at_most: int = LAST_VERSION,
        at_least: int = 0,
        cure: str = "Repeat the call",
    ) -> R:
        """Send a request until it succeeds. Raises the error that is not retriable, or the last one."""
        backoff = Backoff(self._config.retry_backoff_ms / 1000, self._config.retry_backoff_max_ms / 1000)
        failure: ClientError | None = None
        limit = asyncio.timeout(timeout_ms / 1000)
        try:
            async with limit:
                while True:
                    pause = None
                    try:
                        return await self._attempt(coordinator, tried, request, response, error_of, at_most, at_least)
                    except ClosedError:
                        raise
                    except ClientError as error:
                        if not error.retriable:
                            raise
                        failure = error
                        if isinstance(error, BrokerError):
                            if error.code in NOT_THE_COORDINATOR:
                                coordinator.forget_coordinator()
                            elif error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                                pause = CONCURRENT_PAUSE_SECONDS
                    await asyncio.sleep(backoff.next() if pause is None else pause)
        except TimeoutError:
            if not limit.expired():
                raise
            last = f"; the last attempt: {failure.summary}" if failure else ""
            cause = f"not done within {timeout_ms} ms{last}"
            raise TimeLimitError(tried, cause, cure) from failure

    async def _attempt(
        self,
        coordinator: Coordinator,
        tried: str,
        request: Message,
        response: type[R],
        error_of: ErrorOf[R],
        at_most: int,
        at_least: int,
    ) -> R:
        connection = await coordinator.connection()
        key = spec(request.__class__).key
        assert key is not None, "a request has an API key"
        version = connection.versions.highest(key, at_most, at_least)
        commits = isinstance(request, EndTxnRequest) and request.committed
        sent = connection.send(request, response, version=version)
        try:
            answer = await sent
        except BaseException as error:
            self._state.lose_response(of_commit=commits)
            if isinstance(error, TransportError):
                coordinator.forget_coordinator()
            raise
        code, topic, partition = error_of(answer)
        if code:
            if code not in _REFUSED:
                self._state.lose_response(of_commit=commits)
            raise broker_error(code, tried, broker=connection.name, topic=topic, partition=partition)
        self.transaction_version = connection.versions.feature_level(TRANSACTION_VERSION)
        return answer


def _error_of_partitions(response: AddPartitionsToTxnResponse) -> tuple[int, str | None, int | None]:
    """The first error that is a cause: the other partitions have OPERATION_NOT_ATTEMPTED."""
    found: tuple[int, str | None, int | None] = (0, None, None)
    for topic in response.results_by_topic_v3_and_below:
        for row in topic.results_by_partition:
            if row.partition_error_code and found[0] in (0, ErrorCode.OPERATION_NOT_ATTEMPTED):
                found = (row.partition_error_code, topic.name, row.partition_index)
    return found


def _error_of_offsets(response: TxnOffsetCommitResponse) -> tuple[int, str | None, int | None]:
    for topic in response.topics:
        for row in topic.partitions:
            if row.error_code:
                return row.error_code, topic.name, row.partition_index
    return 0, None, None

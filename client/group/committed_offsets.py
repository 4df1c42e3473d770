"""The committed offsets of a group: commit them and read them back (OffsetCommit, OffsetFetch)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from odradek.client.config import ConsumerConfig
from odradek.client.errors import BrokerError, ClientError, TimeLimitError, broker_error
from odradek.client.network.backoff import retried
from odradek.client.network.coordinator import NOT_THE_COORDINATOR, Coordinator
from odradek.client.record import CommittedOffset, TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

Offsets = Mapping[TopicPartition, CommittedOffset]

NO_GENERATION = -1
"""The generation, or member epoch, outside of the group."""

_LAST_BY_NAME = 9  # later versions name topics by id


class CommitIdentity(NamedTuple):
    """The identity in a commit: a member in its generation, or (-1, "") outside of the group."""

    generation: int
    member_id: str
    instance_id: str | None


class CommittedOffsets:
    """The offsets of one group. `commit_identity` returns the identity for the next commit."""

    def __init__(
        self, config: ConsumerConfig, coordinator: Coordinator, commit_identity: Callable[[], CommitIdentity]
    ) -> None:
        self._config = config
        self._coordinator = coordinator
        self._commit_identity = commit_identity

    @property
    def is_member(self) -> bool:
        """Whether commits are sent as a member of the group."""
        return self._commit_identity().generation != NO_GENERATION

    async def commit(self, offsets: Offsets, timeout_ms: int) -> None:
        """Commit these offsets, with retries until `timeout_ms` is over. Raises ClientError."""
        if offsets:
            await self._until(lambda: self._commit(offsets), "commit offsets", timeout_ms)

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: int
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Read the committed offset of each partition; None if there is none. Raises ClientError."""
        found: dict[TopicPartition, CommittedOffset | None] = dict.fromkeys(partitions)
        if found:
            await self._until(lambda: self._fetch(found), "read committed offsets", timeout_ms)
        return found

    async def _until(self, attempt: Callable[[], Awaitable[None]], tried: str, timeout_ms: int) -> None:
        failure: ClientError | None = None

        def is_retriable(error: ClientError) -> bool:
            nonlocal failure
            failure = error
            if isinstance(error, BrokerError) and error.code in NOT_THE_COORDINATOR:
                self._coordinator.forget_coordinator()
            return error.retriable or _is_stale(error)

        limit = asyncio.timeout(timeout_ms / 1000)
        try:
            async with limit:
                await retried(self._config, attempt, is_retriable)
        except TimeoutError:
            if not limit.expired():
                raise
            raise failure or TimeLimitError(tried, f"no response within {timeout_ms} ms") from None

    async def _commit(self, offsets: Offsets) -> None:
        who = self._commit_identity()
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, index), at in offsets.items():
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name, partitions=[]))
            topic.partitions.append(OffsetCommitRequestPartition(index, at.offset, at.leader_epoch, at.metadata))
        request = OffsetCommitRequest(
            self._coordinator.key, who.generation, who.member_id, who.instance_id, topics=list(topics.values())
        )
        response, broker = await self._coordinator.send(request, OffsetCommitResponse, at_most=_LAST_BY_NAME)
        for result in response.topics:
            for row in result.partitions:
                if row.error_code:
                    raise self._error(row.error_code, "commit offsets of", broker, result.name, row.partition_index)

    async def _fetch(self, found: dict[TopicPartition, CommittedOffset | None]) -> None:
        topics: dict[str, OffsetFetchRequestTopics] = {}
        for name, index in found:
            topic = topics.setdefault(name, OffsetFetchRequestTopics(name, partition_indexes=[]))
            topic.partition_indexes.append(index)
        group = OffsetFetchRequestGroup(self._coordinator.key, topics=list(topics.values()))
        request = OffsetFetchRequest(groups=[group], require_stable=self._config.reads_committed)
        response, broker = await self._coordinator.send(request, OffsetFetchResponse, at_most=_LAST_BY_NAME)
        for result in response.groups:
            if result.error_code:
                raise self._error(result.error_code, "read committed offsets of", broker)
            for of_topic in result.topics:
                for row in of_topic.partitions:
                    if row.error_code:
                        raise self._error(
                            row.error_code, "read committed offsets of", broker, of_topic.name, row.partition_index
                        )
                    if row.committed_offset >= 0:
                        found[TopicPartition(of_topic.name, row.partition_index)] = CommittedOffset(
                            row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                        )

    def _error(
        self, code: int, doing: str, broker: str, topic: str | None = None, partition: int | None = None
    ) -> BrokerError:
        tried = f"{doing} group {self._coordinator.key}"
        return broker_error(code, tried, broker=broker, topic=topic, partition=partition)


def _is_stale(failure: ClientError) -> bool:
    """Whether the error is temporary: the member may have a newer epoch by now (KIP-848)."""
    return isinstance(failure, BrokerError) and failure.code is ErrorCode.STALE_MEMBER_EPOCH

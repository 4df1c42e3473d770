"""The fetch positions of partitions: the committed offset, or as `auto_offset_reset` says; seeks by time.

Missing positions are looked up topic by topic; a topic that cannot be found delays no other. If the lookup takes longer
than `default_api_timeout_ms`, the next poll raises its error, and then it begins again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.auto_offset_reset import reset_time
from odradek.client.consumer.offset_lookup import OffsetLookup
from odradek.client.consumer.subscription_state import PartitionState, SubscriptionState
from odradek.client.errors import ClientError
from odradek.client.record import CommittedOffset, TopicPartition

_LOG = logging.getLogger(__name__)

ReadCommitted = Callable[[Collection[TopicPartition], int], Awaitable[Mapping[TopicPartition, CommittedOffset | None]]]


class FetchPositions:
    """Sets the positions of one consumer's partitions.

    `on_change` is called after a background lookup has set positions or errors.
    """

    def __init__(self, config: ConsumerConfig, lookup: OffsetLookup, subscription: SubscriptionState) -> None:
        self.on_change: Callable[[], None] = lambda: None
        self.committed_offsets: ReadCommitted | None = None  # of the consumer's group, if it has one
        self._policy = config.auto_offset_reset
        self._timeout_ms = config.default_api_timeout_ms
        self._lookup = lookup
        self._subscription = subscription
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def initialize_missing(self) -> None:
        """Start a background lookup for each missing position that has none yet."""
        topics: dict[str, list[PartitionState]] = {}
        for state in self._subscription.partitions_without_position():
            topics.setdefault(state.partition.topic, []).append(state)
        for topic, states in topics.items():
            known = self._tasks.get(topic)
            if known is None or known.done():
                self._tasks[topic] = asyncio.create_task(self._initialize_topic(topic, states))

    async def close(self) -> None:
        """Cancel the lookups."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def position(self, state: PartitionState) -> int:
        """The position of a partition; looked up if there is none yet. Raises ClientError."""
        while state.position is None:
            await self.initialize([state])
        return state.position

    async def seek_to_time(self, states: Sequence[PartitionState], time: int) -> None:
        """Seek partitions to the first offset at a time (ms, LATEST, EARLIEST), or to their end. Raises ClientError."""
        found = await self._lookup.find_or_end({state.partition: time for state in states}, self._timeout_ms)
        for state in states:
            self._subscription.seek(state, found[state.partition].offset)

    async def initialize(self, states: Sequence[PartitionState]) -> None:
        """Set the position of partitions of one topic, except those that were sought meanwhile.

        Raises NoOffsetError if the policy is "none", and the errors of `OffsetLookup.find`.
        """
        states = await self._use_committed_offsets(states)
        if not states:
            return
        time = reset_time(self._policy, *states[0].partition)
        seek_counts = [state.seek_count for state in states]
        found = await self._lookup.find_or_end({state.partition: time for state in states}, self._timeout_ms)
        for state, seek_count in zip(states, seek_counts, strict=True):
            if state.seek_count == seek_count:
                offset = found[state.partition].offset
                _LOG.info("%s is read from offset %d (auto_offset_reset=%s)", state.partition, offset, self._policy)
                state.seek(offset)

    async def _use_committed_offsets(self, states: Sequence[PartitionState]) -> Sequence[PartitionState]:
        """Set partitions that never had a position to the committed offset; return those without a position."""
        new = [state for state in states if state.seek_count == 0]
        if self.committed_offsets is not None and new:
            found = await self.committed_offsets([state.partition for state in new], self._timeout_ms)
            for state in new:
                at = found[state.partition]
                if at is not None and state.seek_count == 0:
                    state.seek(at.offset, at.leader_epoch)
        return [state for state in states if state.position is None]

    async def _initialize_topic(self, topic: str, states: list[PartitionState]) -> None:
        try:
            if missing := [state for state in states if state.position is None]:  # the user may have sought meanwhile
                await self.initialize(missing)
        except ClientError as error:
            for state in states:
                if state.position is None:
                    state.error = error
        finally:
            self._tasks.pop(topic, None)  # an eager task ends before it is there
        self.on_change()

"""Finding positions for partitions that have none: what the group committed, or where `auto_offset_reset` says.

It goes topic by topic; a topic that cannot be found holds up no other. What cannot be found within
`default_api_timeout_ms` is an error of the partition, for the user to see at the next poll; the lookup begins again
after that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from odradek.client.admin.results import CommittedOffset
from odradek.client.config import ConsumerConfig
from odradek.client.consumer.auto_offset_reset import reset_time
from odradek.client.consumer.offset_lookup import OffsetLookup
from odradek.client.consumer.subscription_state import PartitionState, SubscriptionState
from odradek.client.errors import ClientError
from odradek.client.record import TopicPartition

_LOG = logging.getLogger(__name__)


ReadCommitted = Callable[[Collection[TopicPartition], int], Awaitable[Mapping[TopicPartition, CommittedOffset | None]]]


class FetchPositions:
    """Looks missing positions up in the background; `on_change` is called after positions or errors have come."""

    def __init__(
        self,
        config: ConsumerConfig,
        lookup: OffsetLookup,
        subscription: SubscriptionState,
        on_change: Callable[[], None],
    ) -> None:
        self._config = config
        self._lookup = lookup
        self._subscription = subscription
        self._on_change = on_change
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.committed_offsets: ReadCommitted | None = None  # of the consumer's group, where it has one

    def initialize_missing(self) -> None:
        """Begin to look for every position that is missing and not being looked for."""
        topics: dict[str, list[PartitionState]] = {}
        for state in self._subscription.partitions_without_position():
            topics.setdefault(state.partition.topic, []).append(state)
        for topic, states in topics.items():
            if topic not in self._tasks:
                self._tasks[topic] = asyncio.create_task(self._initialize_topic(topic, states))

    async def close(self) -> None:
        """Stop looking."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def initialize(self, states: Sequence[PartitionState]) -> None:
        """Give partitions of one topic the position that the policy says, those that were not sought meanwhile.

        Raises NoOffsetError if the policy is "none", and what `OffsetLookup.find` raises.
        """
        states = await self._use_committed_offsets(states)
        if not states:
            return
        policy = self._config.auto_offset_reset
        time = reset_time(policy, *states[0].partition)
        seek_counts = [state.seek_count for state in states]
        found = await self._lookup.find_or_end(
            {state.partition: time for state in states}, self._config.default_api_timeout_ms
        )
        for state, seek_count in zip(states, seek_counts, strict=True):
            if state.seek_count == seek_count:
                offset = found[state.partition].offset
                _LOG.info("%s is read from its %s offset on, %d", state.partition, policy, offset)
                state.seek(offset)

    async def _use_committed_offsets(self, states: Sequence[PartitionState]) -> Sequence[PartitionState]:
        """Give partitions that never had a position what the group committed; return those that have none yet."""
        new = [state for state in states if state.seek_count == 0]
        if self.committed_offsets is not None and new:
            partitions = [state.partition for state in new]
            found = await self.committed_offsets(partitions, self._config.default_api_timeout_ms)
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
            del self._tasks[topic]
        self._on_change()

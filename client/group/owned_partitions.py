"""The partitions that a group member owns: taken over, revoked or lost, with commits and listener calls.

| change | in this order |
|---|---|
| taken over | read the committed offsets, assign, `on_assigned` |
| revoked | commit automatically, `on_revoked`, unassign |
| lost | `on_lost`, unassign: another member owns them already, so a commit would be refused |

A new partition without a committed offset gets its position as `auto_offset_reset` says.

If the listener unsubscribes, the change is abandoned after its call (JoinAbandonedError): nothing is owned then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.group.auto_commit import AutoCommit
from odradek.client.group.committed_offsets import CommittedOffsets
from odradek.client.group.member_states import Change
from odradek.client.group.rebalance_listener import RebalanceListener
from odradek.client.record import CommittedOffset, TopicPartition


class JoinAbandonedError(Exception):
    """The listener has ended the subscription, for which partitions were taken over or given up."""


class OwnedPartitions:
    """The assignment of one member. `on_assignment` is called after each change of it.

    `change` says how far a change is, `are_lost` that other members own them already; it ends with the last of them.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: SubscriptionState,
        offsets: CommittedOffsets,
        auto_commit: AutoCommit,
        on_assignment: Callable[[], None],
    ) -> None:
        self.listener = RebalanceListener()
        self.change = Change.NONE
        self.are_lost = False
        self._is_abandoned = False
        self._timeout_ms = config.default_api_timeout_ms
        self._subscription = subscription
        self._offsets = offsets
        self._auto_commit = auto_commit
        self._on_assignment = on_assignment

    def partitions(self) -> list[TopicPartition]:
        """The owned partitions, sorted."""
        return sorted(self._subscription.states)

    async def take_over(self, assigned: Sequence[TopicPartition]) -> bool:
        """Own exactly the assigned partitions. Returns whether some were revoked for that."""
        owned = self.partitions()
        revoked = [partition for partition in owned if partition not in set(assigned)]
        await self.revoke(revoked)
        new = [partition for partition in assigned if partition not in set(owned)]
        with self._changing():
            offsets = await self._offsets.committed(new, self._timeout_ms)
            self._assign([*self.partitions(), *new], offsets)
            await self._call(Change.ASSIGNING, self.listener.on_assigned(new))
        return bool(revoked)

    async def revoke(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading these partitions, after a commit."""
        if partitions:
            with self._changing():
                await self.commit(partitions)
                await self._call(Change.GIVING_UP, self.listener.on_revoked(partitions))
                self._unassign(partitions)

    async def lose(self, partitions: Sequence[TopicPartition]) -> None:
        """Stop reading partitions that other members own already."""
        if partitions:
            with self._changing():
                await self._call(Change.GIVING_UP, self.listener.on_lost(partitions))
                self._unassign(partitions)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self.change = Change.UNDER_WAY
        try:
            yield
        finally:
            self.change = Change.NONE

    async def _call(self, change: Change, listener: Awaitable[None]) -> None:
        self.change, self._is_abandoned = change, False
        try:
            await listener
        finally:
            self.change = Change.UNDER_WAY
        if self._is_abandoned:
            raise JoinAbandonedError

    def abandon(self) -> None:
        """Own nothing any more, without a call of the listener: it is the one that asks for that."""
        self._is_abandoned = True
        self._assign(())

    async def commit(self, partitions: Collection[TopicPartition]) -> None:
        """Commit the consumed offsets of these partitions, if commits are automatic."""
        await self._auto_commit.commit_revoked(self._subscription.consumed_offsets(partitions))

    def _unassign(self, partitions: Collection[TopicPartition]) -> None:
        self._assign([partition for partition in self.partitions() if partition not in partitions])

    def _assign(
        self, partitions: Sequence[TopicPartition], offsets: Mapping[TopicPartition, CommittedOffset | None] = {}
    ) -> None:
        self._subscription.assign(partitions)
        self.are_lost &= bool(partitions)
        for partition, at in offsets.items():
            if at is not None:
                self._subscription.states[partition].seek(at.offset, at.leader_epoch)
        self._on_assignment()

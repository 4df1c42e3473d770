"""The user's callbacks for changes of the assignment."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.client.record import TopicPartition


class RebalanceListener:
    """Override the methods of interest. They are called in `poll` or in a step of `async for`, between records.

    If a method raises, the poll raises the same exception. Partitions that were to be revoked then stay this consumer's
    until a later poll has called `on_revoked` again. As in Kafka's own client, closing the consumer revokes its
    partitions: `on_revoked` is called, also when an exception ends `async with`, and may commit. `close` raises its
    exception after the consumer has left the group.
    """

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Called before partitions go to another member, and before close. Commits are still possible."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Called with the new partitions, at their committed offsets. Seeks are possible."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Called after the group has removed this member: others may own the partitions, and commits are refused."""
        await self.on_revoked(partitions)

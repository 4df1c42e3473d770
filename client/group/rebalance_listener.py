"""What a user is told when partitions come and go."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.client.record import TopicPartition


class RebalanceListener:
    """Override what is of interest. Calls come from within `poll` or `async for`, so no record is in the user's hands.

    What one of them raises, the poll raises. As with Kafka's own client, closing the consumer revokes its partitions,
    too: `on_revoked` is called then, also where an exception ends `async with`, and may commit; `close` raises what it
    raises, after the group was left.
    """

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These go to another member, or the consumer is closed. They are still this one's: now one can commit."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are new; positions are those that were committed. Seeking is possible."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """The group went on without this member: these are another's already, and commits are refused."""
        await self.on_revoked(partitions)

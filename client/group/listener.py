"""What a user is told when partitions come and go."""

from __future__ import annotations

from collections.abc import Sequence

from client.record import TopicPartition


class RebalanceListener:
    """Override what is of interest. Calls come from within `poll` or `async for`, so no record is in the user's hands.

    What one of them raises, the poll raises.
    """

    async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """These go to another member. They are still this one's: now is the time to commit what was done."""

    async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """These are new; positions are those that were committed. Seeking is possible."""

    async def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """The group went on without this member: these are another's already, and commits are refused."""
        await self.on_revoked(partitions)

"""The events of a partition that other parts of the broker wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from odradek.broker.replication.partition import Partition


class PartitionEvents(Protocol):
    """The receiver of the events of partitions. It is called on the event loop and must not block."""

    def advanced(self, partition: Partition) -> None:
        """Handle a move of the high watermark."""
        ...

    def appended(self, partition: Partition) -> None:
        """Handle an append that followers can read; it is not called for a partition with a single replica."""
        ...

    def followed(self, partition: Partition) -> None:
        """Handle a fetch of a follower that counts: its end or the start of its log may have moved."""
        ...

    def may_join(self, partition: Partition, replica: int) -> None:
        """Handle a fetch of a replica outside the ISR that may join it."""
        ...

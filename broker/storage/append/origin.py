"""The origin of an append as leader, which decides the checks of its batch; as Kafka's `AppendOrigin`."""

from __future__ import annotations

from enum import IntEnum


class Origin(IntEnum):
    """The writer of a batch: a client, or a coordinator of this cluster.

    Batches of coordinators (group metadata, offsets, transaction states, markers) have no sequences, may be control
    batches, and may have a base offset.
    """

    CLIENT = 0
    COORDINATOR = 1

"""The objects that the logs of one directory share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.randomness import Randomness
from odradek.broker.storage.checkpoints.checkpoints import Offsets
from odradek.broker.storage.checkpoints.offset_checkpoints import Partition
from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files


def ignore_lowering(_: Partition, __: Offsets) -> None:
    """Keep the rows of a log that was truncated: there are none."""


def ignore_flush(_: float) -> None:
    """Ignore the duration of a flush."""


class LogResources(NamedTuple):
    """The seams and the bounded caches behind them; `failure` is the one state that the logs share.

    `on_flush` is called with the seconds that the sync of a segment took, on the thread that did it.
    `on_lowered` is called with a log whose offsets were lowered, before it is appended to; it may raise `OSError`.
    """

    descriptors: DescriptorCache
    clock: Clock
    randomness: Randomness
    deletions: Deletions
    failure: DiskFailure
    on_flush: Callable[[float], None] = ignore_flush
    on_lowered: Callable[[Partition, Offsets], None] = ignore_lowering

    @property
    def files(self) -> Files:
        return self.descriptors.retrying_files

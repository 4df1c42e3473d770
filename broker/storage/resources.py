"""The objects that the logs of one directory share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.randomness import Randomness
from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files


def ignore_flush(_: float) -> None:
    """Ignore the duration of a flush."""


class LogResources(NamedTuple):
    """The seams and the bounded caches behind them; `failure` is the one state that the logs share.

    `on_flush` is called with the seconds that the sync of a segment took, on the thread that did it.
    """

    descriptors: DescriptorCache
    clock: Clock
    randomness: Randomness
    deletions: Deletions
    failure: DiskFailure
    on_flush: Callable[[float], None] = ignore_flush

    @property
    def files(self) -> Files:
        return self.descriptors.retrying_files

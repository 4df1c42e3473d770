"""What the logs of one directory share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from odradek.broker.clock import Clock
from odradek.broker.randomness import Randomness
from odradek.broker.storage.disk.deletions import Deletions
from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.disk_failure import DiskFailure
from odradek.broker.storage.disk.files import Files


def unheard(_: float) -> None:
    """Nobody wants to know how long a flush took."""


class LogResources(NamedTuple):
    """The seams and the bounded things behind them; `failure` is the one state that logs have in common.

    `on_flush` is told how many seconds it took to sync a segment, in whatever thread did it.
    """

    descriptors: DescriptorCache
    clock: Clock
    randomness: Randomness
    deletions: Deletions
    failure: DiskFailure
    on_flush: Callable[[float], None] = unheard

    @property
    def files(self) -> Files:
        return self.descriptors.retrying_files

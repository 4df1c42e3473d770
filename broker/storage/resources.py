"""What the logs of one directory share."""

from __future__ import annotations

from typing import NamedTuple

from broker.clock import Clock
from broker.randomness import Randomness
from broker.storage.deletions import Deletions
from broker.storage.descriptors import DescriptorCache
from broker.storage.disk_failure import DiskFailure
from broker.storage.files import Files


class LogResources(NamedTuple):
    """The seams and the bounded things behind them; `failure` is the one state that logs have in common."""

    descriptors: DescriptorCache
    clock: Clock
    randomness: Randomness
    deletions: Deletions
    failure: DiskFailure

    @property
    def files(self) -> Files:
        return self.descriptors.files

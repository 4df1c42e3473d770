"""The other workers of this machine (num.workers), as this one sees them in the metadata: for the status pages.

A probe asks one port, and the answer is of all workers: a machine is ready when each of them serves.
"""

from __future__ import annotations

from odradek.broker.config import BrokerConfig
from odradek.broker.config.workers import NODE_IDS_APART, node_id
from odradek.broker.metadata.image import MetadataImage


class Siblings:
    """Those of the broker with this configuration; none if it is alone."""

    def __init__(self, config: BrokerConfig) -> None:
        own, first = config.node_id, config.node_id % NODE_IDS_APART
        workers = ((number, node_id(first, number)) for number in range(config.num_workers))
        self._numbers = {node: number for number, node in workers if node != own}
        self._seen: set[int] = set()

    def why_not_ready(self, image: MetadataImage) -> str | None:
        """Return why this machine does not serve all its partitions; None if every other worker serves."""
        missing = [number for node, number in self._numbers.items() if node not in image.brokers]
        return f"{_workers(missing)} not serve" if missing else None

    def why_unhealthy(self, image: MetadataImage) -> str | None:
        """Return which workers have served before and are gone, None if none is. They may start again any moment."""
        self._seen |= self._numbers.keys() & image.brokers.keys()
        gone = [number for node, number in self._numbers.items() if node in self._seen and node not in image.registered]
        return f"{_workers(gone)} not run" if gone else None


def _workers(numbers: list[int]) -> str:
    """Return the subject of a sentence, and its verb."""
    if len(numbers) == 1:
        return f"worker {numbers[0]} does"
    return f"workers {', '.join(map(str, numbers))} do"

"""The count of unclean elections, which the controller takes from the changes of its image.

An election is unclean if the new leader may lack committed records and another replica may have them: it was not in
sync, or it was, but has lost data since. Counting images instead of decisions counts each election once: whether the
controller ran it or another broker on an administrator's request, and not if the transaction was refused.
"""

from __future__ import annotations

from odradek.broker.metadata.image import BrokerImage, ImageChange, PartitionImage
from odradek.broker.metrics.counts.metrics import Metrics


class UncleanElections:
    """Counts into `metrics`; `image_changed` must be called with every image."""

    def __init__(self, node_id: int, metrics: Metrics) -> None:
        self._node_id = node_id
        self._metrics = metrics

    def image_changed(self, change: ImageChange) -> None:
        """Count the unclean elections of an image, if this broker is the controller."""
        if change.after.controller_id != self._node_id:
            return
        for old, new in change.topics():
            if old is None or new is None:
                continue
            for before, after in zip(old.partitions, new.partitions, strict=False):
                if after is not before and after.leader_epoch > before.leader_epoch and after.leader >= 0:
                    leader = change.after.registered.get(after.leader)
                    self._metrics.unclean_leader_elections += _is_unclean(before, after.leader, leader)


def _is_unclean(before: PartitionImage, leader: int, broker: BrokerImage | None) -> bool:
    """Return whether the new `leader` may lack records that another replica has; `broker` is its registration."""
    in_sync_since = before.isr.get(leader)
    if in_sync_since is None:
        return True
    has_lost = broker is not None and broker.intact_since > in_sync_since
    return has_lost and len(before.isr) > 1

"""The lost logs of a broker: those in a failed directory, and those that are missing.

A log is missing if this broker is in the partition's in-sync set under an earlier broker epoch: it had the log then. If
a log directory is offline, any log that this broker had may be in it. A lost log is not created: empty, it might lead.

That epoch is no proof for a new partition: its replicas are in sync from its creation on, so that all of them may have
been killed before they made their logs, or have lost power before the logs were on a disk. Each leaves the in-sync set,
and the last member leads with an empty log, because a missing log that is newer than `LogDirs.logs_revision` cannot
come back. An older one can, with its directory: there is no leader until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from odradek.broker.metadata.image import BrokerImage, PartitionImage
from odradek.broker.metadata.leaders.lost_replicas import LostReplica
from odradek.broker.replication.partition import NO_LEADER, Partition
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_dirs import LogDirs
from odradek.broker.storage.opening.log_opening import ZERO_TOPIC_ID


class LostLogs:
    """The lost logs of one broker. Without `are_reported` nothing would elect another: a missing log is created then.

    `on_loss` is called when there are more, or when one of them should lead or be in sync again.
    """

    def __init__(self, node_id: int, log_dirs: LogDirs) -> None:
        self.are_reported = False
        self.on_loss: Callable[[], None] = lambda: None
        self.started_revision: int | None = None  # of the metadata when the broker has found its logs, None before
        self._node_id = node_id
        self._log_dirs = log_dirs
        self._without_partition: dict[tuple[bytes, int], LostReplica] = {}

    def all(self, partitions: Iterable[Partition]) -> list[LostReplica]:
        """Return the lost logs; `partitions` are all of this broker, some of which may be offline."""
        offline = [LostReplica(each.topic_id, each.index, is_gone=False) for each in partitions if each.offline]
        return [*offline, *self._without_partition.values()]

    def check(
        self, log: Log | None, topic_id: bytes, index: int, image: PartitionImage, broker: BrokerImage | None
    ) -> bool:
        """Return whether the log of a partition that was on this broker before is lost; `broker`: its registration."""
        if not self._is_lost(log, topic_id, image, broker):
            return False
        is_gone, is_new = not self._log_dirs.offline, image.created_revision > self._log_dirs.logs_revision
        self._without_partition[topic_id, index] = LostReplica(topic_id, index, is_gone, is_new)
        if self._epoch_in_sync(image) is not None:
            self.on_loss()
        return True

    def may_adopt(self, log: Log, image: PartitionImage) -> bool:
        """Return whether a log whose topic id is unknown may be taken for a partition: nobody else is in sync.

        A power loss may remove the id, which is synced before any record of the log. So nothing that was synced is in
        it, and it may be of an older topic of the same name, whose records must not be served under the new id. It is
        if the partition was created after the start of this broker.
        """
        is_new = self.started_revision is not None and image.created_revision > self.started_revision
        return log.topic_id == ZERO_TOPIC_ID and not is_new and not image.isr.keys() - {self._node_id}

    def check_offline(self, partition: Partition) -> None:
        """Report an offline partition again if a new image has this broker as its leader or in its in-sync set."""
        image = partition.image
        if partition.offline and image and (partition.is_leader or self._epoch_in_sync(image) is not None):
            self.on_loss()

    def _epoch_in_sync(self, image: PartitionImage) -> int | None:
        """Return the epoch under which this broker is in sync, or was when it became an eligible leader replica."""
        return image.isr.get(self._node_id) or image.eligible_leader_replicas.get(self._node_id)

    def forget(self, topic_id: bytes, index: int) -> None:
        """Remove a partition: it has a log, or is not on this broker any more."""
        self._without_partition.pop((topic_id, index), None)

    def _is_lost(self, log: Log | None, topic_id: bytes, image: PartitionImage, broker: BrokerImage | None) -> bool:
        if log is not None and (log.topic_id == topic_id or self.may_adopt(log, image)):
            return False
        if log is None and self._log_dirs.offline:
            return True
        epoch = self._epoch_in_sync(image)
        return self.are_reported and epoch is not None and broker is not None and epoch < broker.epoch


def without_lost_leadership(image: PartitionImage, node_id: int, broker: BrokerImage | None) -> PartitionImage:
    """Return the state of a partition without a leader if this broker is that, but has lost records since.

    After a power loss the metadata name this broker as the leader until the controller has removed it. If it led
    meanwhile, in its old epoch, followers would remove committed records that this log lacks. `broker`: it, registered.
    """
    epoch_in_isr = image.isr.get(node_id)
    if image.leader != node_id or broker is None or epoch_in_isr is None or broker.intact_since <= epoch_in_isr:
        return image
    return msgspec.structs.replace(image, leader=NO_LEADER)

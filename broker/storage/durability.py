"""The order of syncs, and the recovery point: everything below it is on the disk.

`flush` syncs in an order that keeps the recovery point true at every moment: the topic id and the leader epochs, then
the snapshots, then the segments; only then does the recovery point rise. So nothing below it needs recovery after a
power cut. `close` leaves the files as a clean stop does.

A flush may run beside the appender, on another thread; two flushes of one log run one after the other.
"""

from __future__ import annotations

from odradek.broker.storage.checkpoints.leader_epochs import LeaderEpochs
from odradek.broker.storage.checkpoints.partition_metadata import sync_topic_id, write_topic_id
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.producers.partition_producers import PartitionProducers
from odradek.broker.storage.resources import LogResources
from odradek.broker.storage.segmented_log import SegmentedLog


class Durability:
    """The syncing of one log. `identity_is_synced` is false where it may not be. Raises `OSError`."""

    def __init__(
        self,
        segmented: SegmentedLog,
        leader_epochs: LeaderEpochs,
        producers: PartitionProducers,
        resources: LogResources,
        *,
        identity_is_synced: bool,
    ) -> None:
        self._segmented = segmented
        self._leader_epochs = leader_epochs
        self._producers = producers
        self._resources = resources
        self._identity_is_synced = identity_is_synced
        self._last_flush_ms = resources.clock.time_ms()

    def target(self, config: LogConfig) -> int | None:
        """The offset up to which a flush is due, by the configuration or for rolled segments; or None."""
        end_offset, recovery_point = self._segmented.end.offset, self._segmented.recovery_point
        if end_offset > recovery_point:
            if end_offset - recovery_point >= config.flush_messages:
                return end_offset
            if self._resources.clock.time_ms() - self._last_flush_ms >= config.flush_ms:
                return end_offset
            active = self._segmented.segments.active
            if active.base_offset > recovery_point:
                return active.base_offset
        return None

    def flush(self, up_to: int) -> None:
        """Sync everything below `up_to` (exclusive)."""
        self._sync_small_files()
        self._segmented.flush(up_to)
        self._last_flush_ms = self._resources.clock.time_ms()

    def close(self, end_offset: int) -> None:
        """Trim and sync everything, with a snapshot of the producers at the end; nothing if nothing was changed."""
        if self._segmented.changed:
            self._producers.snapshot_at(end_offset)
            self._sync_small_files()
        self._segmented.close()

    def write_topic_id(self, topic_id: bytes) -> None:
        """Write a lost topic id again; the next flush syncs it."""
        write_topic_id(self._resources.files, self._segmented.directory, topic_id)
        self._identity_is_synced = False

    def sync_identity(self) -> None:
        """Sync the topic id and the name of the directory, if that was not done."""
        if not self._identity_is_synced:
            sync_topic_id(self._resources.files, self._segmented.directory)
            self._identity_is_synced = True

    def _sync_small_files(self) -> None:
        self.sync_identity()
        self._leader_epochs.sync()
        self._producers.flush()

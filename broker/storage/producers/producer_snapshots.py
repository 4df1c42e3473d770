"""The snapshot files of one partition: when they are written, which are used, which are removed.

A snapshot is written when a segment is rolled (named by the new segment's base offset) and when the log is closed
(named by its end), even if there are no producers: then it is empty. A segment's snapshot is deleted with the segment.
When a log is opened only the snapshots of its segments stay, and the latest. The producers at some offset are those of
the latest sound snapshot up to it, with what follows replayed (`producer_replay`).
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Collection, Iterable

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from odradek.broker.storage.producers.producer_entry import NO_OFFSET, ProducerEntry
from odradek.broker.storage.producers.producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot
from odradek.broker.storage.producers.producer_state import ProducerState

_LOG = logging.getLogger(__name__)


class ProducerSnapshots:
    """The snapshots in one partition's directory, by offset."""

    def __init__(self, directory: str, descriptors: DescriptorCache, offsets: Iterable[int] = ()) -> None:
        self._directory = directory
        self._files = descriptors.retrying_files
        self.offsets = sorted(offsets)
        self._unsynced: list[int] = []

    @property
    def latest(self) -> int:
        """The offset of the latest snapshot, or -1."""
        return self.offsets[-1] if self.offsets else -1

    def path(self, offset: int) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def write(self, state: ProducerState) -> None:
        """Write down `state`, unless that was done at its end offset, or there is nothing below it; not yet synced."""
        offset = state.end_offset
        if offset <= max(self.latest, 0):
            return
        path = self.path(offset)
        self._files.remove(path)
        descriptor = self._files.open(path, create=True)
        try:
            self._files.pwrite(descriptor, encode_snapshot(state.entries.values()), 0)
        finally:
            self._files.close(descriptor)
        insort(self.offsets, offset)
        self._unsynced.append(offset)

    def load_latest(self, state: ProducerState, log_start_offset: int, now_ms: int, expiration_ms: int) -> None:
        """Make `state` that of the latest sound snapshot, or none at `log_start_offset`; remove unsound ones."""
        while self.offsets:
            offset = self.latest
            try:
                entries = decode_snapshot(self._files.read(self.path(offset)))
            except CorruptSnapshotError as error:
                _LOG.warning("dropping the producer snapshot %s: %s", self.path(offset), error)
                self.remove(offset)
            else:
                for entry in entries:
                    state.note_id(entry.producer_id)
                state.load((e for e in entries if not _is_expired(e, now_ms, expiration_ms)), offset)
                return
        state.load((), log_start_offset)

    def remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        self._files.remove(self.path(offset))

    def remove_outside(self, log_start_offset: int, log_end_offset: int) -> None:
        """Remove the snapshots of offsets that the log does not reach, and of such before it starts."""
        for offset in list(self.offsets):
            if not log_start_offset < offset <= log_end_offset:
                self.remove(offset)

    def remove_strays(self, base_offsets: Collection[int]) -> None:
        """Keep the snapshots at the base offsets of segments, and the very latest."""
        for offset in self.offsets[:-1]:
            if offset not in base_offsets:
                self.remove(offset)
        if base_offsets and self.offsets and self.latest < max(base_offsets) and self.latest not in base_offsets:
            self.remove(self.latest)

    def mark_deleted(self, offset: int) -> str | None:
        """Take the snapshot at `offset` out, if there is one, and return the path where its file waits for removal."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        self._files.rename(path, path + DELETED_SUFFIX)
        return path + DELETED_SUFFIX

    def flush(self) -> None:
        """Sync the snapshots written since the last time."""
        unsynced, self._unsynced = self._unsynced, []
        while unsynced:
            try:
                self._sync(unsynced[-1])
            except OSError:
                self._unsynced += unsynced
                raise
            unsynced.pop()

    def _sync(self, offset: int) -> None:
        if offset in self.offsets:
            descriptor = self._files.open(self.path(offset))
            try:
                self._files.fsync(descriptor)
            finally:
                self._files.close(descriptor)


def _is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.transaction_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms

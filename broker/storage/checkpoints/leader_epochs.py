"""The start offset of each leader epoch of a log (KIP-101), stored in `leader-epoch-checkpoint`.

```
0            version
2            number of entries
0 0          epoch, start offset: the offset of the first batch that the leader of this epoch wrote
5 1370       both ascend strictly
```

A follower, or a consumer that kept its position over a change of leader, asks for the end of an epoch; if it lies below
its own end, the two logs differ from there on.

The file is written before the first batch of a new epoch, and synced (`sync`) before that batch counts as synced. So it
never lacks an epoch below the recovery point; recovery learns those above from the batches. After a crash it may have
epochs beyond the end of the log; opening the log removes them. Kafka syncs at once, and makes the append wait for it.

An epoch that has begun on this broker ends all earlier ones, though the file has it only from its first batch on:
`begin` keeps it in memory. Kafka writes it at once, and removes it at the next start if no batch followed.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from odradek.broker.storage.checkpoints.text_file import MalformedFileError, encode_rows, parse_rows
from odradek.broker.storage.disk.files import Files, replace_file, sync_file
from odradek.protocol.records.batch_header import MAGIC, BatchHeader

NO_EPOCH = -1
NO_OFFSET = -1

_epoch = attrgetter("epoch")
_start_offset = attrgetter("start_offset")


class EpochStart(NamedTuple):
    """A leader epoch and the first offset that its leader wrote."""

    epoch: int
    start_offset: int


class LeaderEpochs:
    """The epochs of one log. Reading is safe beside writers: the list of entries is replaced, never changed.

    The appender writes; another thread may call `truncate_from_start` and `sync` at the same time.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._is_synced = True
        self._lock = Lock()
        self.entries: list[EpochStart] = []  # oldest first
        self.latest = NO_EPOCH  # the epoch of the last batch; a field, because every append reads it
        self._begun: EpochStart | None = None  # the epoch that this broker leads, if it is later than `latest`
        self._known: list[EpochStart] = []  # the entries, and the epoch that has begun

    def load(self) -> None:
        """Read the file. Raises `MalformedFileError` if it is damaged; then there are no entries."""
        entries: list[EpochStart] = []
        for epoch, start_offset in parse_rows(self._files.read(self._path), columns=2):
            entry = EpochStart(int(epoch), int(start_offset))
            if entries and (entry.epoch <= entries[-1].epoch or entry.start_offset <= entries[-1].start_offset):
                raise MalformedFileError(f"{self._path}: {entry} after {entries[-1]}")
            entries.append(entry)
        self._take(entries)

    def begin(self, epoch: int, end_offset: int) -> None:
        """Record that this broker leads `epoch`, which begins at the end of the log; its first batch writes it."""
        with self._lock:
            self._begun = EpochStart(epoch, end_offset)
            self._combine()

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record and write that `epoch` begins at `start_offset`; do nothing if it is recorded already.

        Removes contradicting entries, of this or later epochs or from this offset on: their batches were never written.
        """
        entries = self.entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return
        with self._lock:
            kept = [entry for entry in self.entries if entry.epoch < epoch and entry.start_offset < start_offset]
            self._replace([*kept, EpochStart(epoch, start_offset)])

    def follow(self, header: BatchHeader) -> None:
        """Record and write the epoch of a leader's batch. A message of magic 0 or 1 has none, and none is known then.

        So a log of old messages is never truncated by epochs (Kafka's `UnifiedLog.append`).
        """
        if header.partition_leader_epoch >= 0:
            self.assign(header.partition_leader_epoch, header.base_offset)
        elif header.magic < MAGIC:
            self.clear()

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that begin at `end_offset`, the new end of the log (exclusive), or later."""
        with self._lock:
            if self._begun is not None:
                self._begun = EpochStart(self._begun.epoch, end_offset)
            kept = [entry for entry in self.entries if entry.start_offset < end_offset]
            if len(kept) < len(self.entries):
                self._replace(kept)
            self._combine()

    def truncate_from_start(self, start_offset: int) -> None:
        """Move the epoch of `start_offset`, the new start of the log, there; remove earlier epochs."""
        with self._lock:
            covered = bisect_right(self.entries, start_offset, key=_start_offset)
            if covered and self.entries[covered - 1].start_offset < start_offset:
                self._replace([EpochStart(self.entries[covered - 1].epoch, start_offset), *self.entries[covered:]])

    def clear(self) -> None:
        """Remove all epochs, and write that, whatever the file held."""
        with self._lock:
            self._replace([])

    def epoch_for(self, offset: int) -> int:
        """The epoch whose leader wrote `offset`, or -1 if unknown."""
        entries = self.entries
        after = bisect_right(entries, offset, key=_start_offset)
        return entries[after - 1].epoch if after else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The result of OffsetForLeaderEpoch: the largest epoch up to `epoch`, and its end (exclusive).

        `(-1, -1)` if `epoch` is later than all known epochs; an epoch before all known ones "ends" where those begin.
        """
        entries = self._known
        if epoch == NO_EPOCH or not entries:
            return NO_EPOCH, NO_OFFSET
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        after = bisect_right(entries, epoch, key=_epoch)
        if after == len(entries):
            return NO_EPOCH, NO_OFFSET
        return (entries[after - 1].epoch if after else epoch), entries[after].start_offset

    def sync(self) -> None:
        """Sync the file; may run beside the writer."""
        if not self._is_synced:
            self._is_synced = True  # first: later writes need another sync
            try:
                sync_file(self._files, self._path)
            except OSError:
                self._is_synced = False
                raise

    def _replace(self, entries: list[EpochStart]) -> None:
        rows = [f"{epoch} {start_offset}" for epoch, start_offset in entries]
        replace_file(self._files, self._path, encode_rows(0, rows), synced=False)
        self._take(entries)  # after the write: the next append retries a failed one
        self._is_synced = False

    def _take(self, entries: list[EpochStart]) -> None:
        self.entries = entries
        self.latest = entries[-1].epoch if entries else NO_EPOCH
        self._combine()

    def _combine(self) -> None:
        begun = self._begun
        if begun is None or begun.epoch <= self.latest:
            self._known = self.entries
        else:
            self._known = [*[entry for entry in self.entries if entry.start_offset < begun.start_offset], begun]

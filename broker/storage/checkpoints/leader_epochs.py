"""Which leader epoch began at which offset (KIP-101), kept in `leader-epoch-checkpoint`.

```
0            version
2            number of entries
0 0          epoch, start offset: the offset of the first batch that the leader of this epoch wrote
5 1370       both ascend strictly
```

A follower, or a consumer that kept its position over a change of leader, asks where an epoch ended; where the answer
lies below its own end, the two logs differ from there on.

The file is written before the first batch of a new epoch is, and synced (`sync`) before that batch is promised to be.
So it never lacks an epoch below the recovery point; recovery learns those above it from the batches. It may have too
much after a crash; opening the log cuts that off. Kafka syncs at once, and makes the append wait for it.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from odradek.broker.storage.checkpoints.text_file import MalformedFileError, encode_rows, parse_rows
from odradek.broker.storage.disk.files import Files, replace_file, sync_file

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

    The appender writes, and beside it whoever moves the start of the log.
    """

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._is_synced = True
        self._lock = Lock()
        self.entries: list[EpochStart] = []  # oldest first
        self.latest = NO_EPOCH  # the epoch of the log's end; a field, because every append looks at it

    def load(self) -> None:
        """Read the file; `MalformedFileError` if it is damaged, and then nothing is known."""
        entries: list[EpochStart] = []
        for epoch, start_offset in parse_rows(self._files.read(self._path), columns=2):
            entry = EpochStart(int(epoch), int(start_offset))
            if entries and (entry.epoch <= entries[-1].epoch or entry.start_offset <= entries[-1].start_offset):
                raise MalformedFileError(f"{self._path}: {entry} after {entries[-1]}")
            entries.append(entry)
        self._take(entries)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, and write it down; nothing happens if that is known.

        Entries that contradict it, of this or later epochs or from this offset on, go: their batches were never
        written.
        """
        entries = self.entries
        if entries and entries[-1].epoch == epoch and entries[-1].start_offset <= start_offset:
            return
        with self._lock:
            kept = [entry for entry in self.entries if entry.epoch < epoch and entry.start_offset < start_offset]
            self._replace([*kept, EpochStart(epoch, start_offset)])

    def truncate_from_end(self, end_offset: int) -> None:
        """The log was cut to end at `end_offset` (exclusive): drop the epochs that begin there or later."""
        with self._lock:
            kept = [entry for entry in self.entries if entry.start_offset < end_offset]
            if len(kept) < len(self.entries):
                self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log starts at `start_offset` now: the epoch of that offset begins there, and the ones before are gone."""
        with self._lock:
            covered = bisect_right(self.entries, start_offset, key=_start_offset)
            if covered and self.entries[covered - 1].start_offset < start_offset:
                self._replace([EpochStart(self.entries[covered - 1].epoch, start_offset), *self.entries[covered:]])

    def clear(self) -> None:
        """Forget all epochs, and write that down, whatever the file held."""
        with self._lock:
            self._replace([])

    def epoch_for(self, offset: int) -> int:
        """The epoch whose leader wrote `offset`, or -1 if that is not known."""
        entries = self.entries
        after = bisect_right(entries, offset, key=_start_offset)
        return entries[after - 1].epoch if after else NO_EPOCH

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Answer OffsetForLeaderEpoch: the largest epoch up to `epoch`, and its end (exclusive).

        `(-1, -1)` if `epoch` is later than all that are known; an epoch before all known ones "ends" where those begin.
        """
        entries = self.entries
        if epoch == NO_EPOCH or not entries:
            return NO_EPOCH, NO_OFFSET
        if epoch == entries[-1].epoch:
            return epoch, log_end_offset
        after = bisect_right(entries, epoch, key=_epoch)
        if after == len(entries):
            return NO_EPOCH, NO_OFFSET
        return (entries[after - 1].epoch if after else epoch), entries[after].start_offset

    def sync(self) -> None:
        """Make what was written survive a power cut; may be called beside the writer."""
        if not self._is_synced:
            self._is_synced = True  # first: what is written from here on is for the next time
            try:
                sync_file(self._files, self._path)
            except OSError:
                self._is_synced = False
                raise

    def _replace(self, entries: list[EpochStart]) -> None:
        rows = [f"{epoch} {start_offset}" for epoch, start_offset in entries]
        replace_file(self._files, self._path, encode_rows(0, rows), synced=False)
        self._take(entries)  # when they are written: what failed is tried again with the next append
        self._is_synced = False

    def _take(self, entries: list[EpochStart]) -> None:
        self.entries = entries
        self.latest = entries[-1].epoch if entries else NO_EPOCH

"""What the first pass of compaction learns of every record of the dirty part, so that the second need not ask again.

One byte for each offset:

| state        | the record                                          |
|--------------|-----------------------------------------------------|
| `LIVE`       | is the last of its key, or there is no such record  |
| `SUPERSEDED` | has a later one of its key                          |
| `KEYLESS`    | has no key                                          |
| `TOMBSTONE`  | is the last of its key, and has no value            |

With it the second pass need not hash the keys of the dirty part or look them up, and does not even decompress a batch
of which everything or nothing stays: compaction of 100-byte records is 1.5 times as fast (`benchmarks/cleaner.py`).
Offsets for which there was no memory left are looked up by key (`key_offsets`), and so is what was clean before.
"""

from __future__ import annotations

LIVE, SUPERSEDED, KEYLESS, TOMBSTONE = range(4)


class DirtyOffsets:
    """The states from `start_offset` on, `LIVE` at first, for as many offsets as there are bytes of memory."""

    def __init__(self, start_offset: int, memory_bytes: int) -> None:
        self.start_offset = start_offset
        self._states = bytearray(memory_bytes)

    def note(self, offset: int, state: int) -> None:
        """Set the state of a record at or above `start_offset`; nothing happens where there is no room for it."""
        index = offset - self.start_offset
        if index < len(self._states):
            self._states[index] = state

    def states(self, first_offset: int, last_offset: int) -> bytearray | None:
        """The states of these offsets (inclusive), or None if they are not all known here."""
        start, end = first_offset - self.start_offset, last_offset + 1 - self.start_offset
        return self._states[start:end] if start >= 0 and end <= len(self._states) else None

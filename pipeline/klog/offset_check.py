"""The check that the offsets of a range's batches follow each other.

The checksum of a batch does not cover its base offset, so only the batches around it, the index and the names of
segments show that it is wrong:

```
batches     0–9 | 10–19 | 25–34 | 30–39 | 50–59 |           the next segment begins with 60
                            ^               ^
                the base offset is not 20   offsets 40 to 49 are missing
```

| | a log with every offset | a log that was compacted |
|---|---|---|
| expected base offset | the one after the batch before | that, or a higher one |
| a higher one, which fits the batches behind | a gap | as expected |
| any other | a wrong base offset: the batch is damage | the same |

Markers of transactions have offsets, too. Messages of magic 0 and 1 store their last offset only; these must ascend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

import numpy as np

from odradek.broker.storage.offline.missing_offsets import MissingOffsets
from odradek.pipeline.klog.chunks import Chunk, is_sound
from odradek.pipeline.klog.index_entries import LazyEntries
from odradek.pipeline.klog.segment_ranges import SegmentRange
from odradek.pipeline.records.damage import Damage
from odradek.pipeline.records.varints import Ints
from odradek.pipeline.records.whole_batches import WholeBatches, numbers
from odradek.protocol.records.batch_header import MAGIC

_OFFSET: Final = Struct(">q")

Peek = Callable[[int], WholeBatches | None]


class OffsetCheck:
    """The check of the ranges of one partition, one after the other.

    `has_gaps`: compaction has removed records, so gaps are no damage. The reader may set it at any time.
    """

    def __init__(self, *, has_gaps: bool) -> None:
        self.has_gaps = has_gaps
        self.lowest = 0  # offset that the next batch may have
        self._next: int | None = None  # offset behind the batch before; None if that is damaged, or not known

    def start(self, range_: SegmentRange, entries: LazyEntries, peek: Peek) -> None:
        """Begin with a range; `peek` reads the batches at a position of it."""
        self._range = range_
        self._entries = entries
        self._peek = peek
        self._next = self._offset_before() if range_.begin else range_.base_offset
        self.lowest = range_.base_offset if self._next is None else self._next

    def skip(self) -> None:
        """Expect any offset: a part of the range is damage."""
        self._next = None

    def split(self, chunk: Chunk) -> Iterator[Chunk | Damage | MissingOffsets]:
        """Yield the chunk in parts, without batches that have a wrong base offset, and the findings between them."""
        bases, lasts = _offsets(chunk.batches, self._next)
        expected = np.empty_like(bases)
        expected[0] = self.lowest if self._next is None else self._next
        expected[1:] = lasts[:-1] + 1
        if not self.has_gaps and self._next is not None and (bases == expected).all():
            self._advance(int(lasts[-1]) + 1)
            yield chunk
            return
        suspects = self._entries.get().wrong(chunk, lasts)
        if self._are_in_place(chunk, bases, lasts, expected, suspects):
            self._advance(int(lasts[-1]) + 1)
            yield chunk
        else:
            yield from self._split(chunk, bases, lasts, suspects)

    def _are_in_place(self, chunk: Chunk, bases: Ints, lasts: Ints, expected: Ints, suspects: set[int]) -> bool:
        if not self.has_gaps and self._next is not None:
            return False
        if suspects or lasts[-1] >= self._range.limit or not (bases >= expected).all():
            return False
        if not self.has_gaps and not (bases[1:] == expected[1:]).all():
            return False
        if bases[-1] == expected[-1]:
            return True
        behind, _ = self._behind(chunk)  # would be lower if the last base offset of the chunk is too high
        return not behind or behind[0] > lasts[-1]

    def _advance(self, next_offset: int | None) -> None:
        self._next = next_offset
        if next_offset is not None:
            self.lowest = next_offset

    def finish(self) -> Iterator[Damage | MissingOffsets]:
        """Compare the end of the range with the beginning of the next segment."""
        following, found, range_ = self._range.next_offset, self._next, self._range
        if following is None or found is None:
            return
        if found > following:
            reason = f"the segment ends with offset {found - 1}, but the next one begins with {following}"
            yield Damage(range_.path, range_.end, 0, following, reason)
        elif found < following and not self.has_gaps:
            yield MissingOffsets(range_.path, range_.end, found, following - 1)

    def _split(
        self, chunk: Chunk, bases: Ints, lasts: Ints, suspects: set[int]
    ) -> Iterator[Chunk | Damage | MissingOffsets]:
        """Yield the parts of a chunk in which not all batches are in place."""
        count = len(bases)
        behind_bases, behind_lasts = self._behind(chunk)
        offsets = list(zip([*bases.tolist(), *behind_bases], [*lasts.tolist(), *behind_lasts], strict=True))
        yielded = 0
        for number in range(count):
            base, last = offsets[number]
            if base != self._next and number and not is_sound(chunk.batches, number - 1):
                self._next, self.lowest = None, self._range.base_offset  # its last offset may be wrong
            expected = self._next
            if base == expected:
                self._advance(last + 1)
                continue
            is_wrong = number in suspects or self._is_wrong(base, last, offsets[number + 1 : number + 3])
            if not is_wrong and (expected is None or self.has_gaps):
                self._advance(last + 1)
                continue
            if yielded < number:
                yield chunk.part(yielded, number)
            if is_wrong:
                yielded = number + 1
                yield self._wrong(chunk, number, base)
                if expected is not None and not self.has_gaps:
                    self._advance(expected + last - base + 1 if is_sound(chunk.batches, number) else None)
            else:
                yielded = number
                yield MissingOffsets(self._range.path, chunk.at(number), self.lowest, base - 1)
                self._advance(last + 1)
        if yielded < count:
            yield chunk.part(yielded, count)

    def _is_wrong(self, base: int, last: int, following: list[tuple[int, int]]) -> bool:
        """Whether a batch that does not follow the one before it has a wrong base offset, not the one behind it."""
        if base < self.lowest or last >= self._range.limit:
            return True
        if not following or following[0][0] > last or following[0][0] < self.lowest:
            return False
        # One of both is too high or too low. The second one is right if the third one follows it.
        if len(following) > 1 and self._next is None:
            return following[1][0] == following[0][1] + 1 or following[1][0] <= last
        return True

    def _wrong(self, chunk: Chunk, number: int, base: int) -> Damage:
        place = "" if self._next is None else f": the batch before it ends with {self._next - 1}"
        reason = f"the base offset of the batch, {base}, does not fit its place{place}"
        return Damage(self._range.path, chunk.at(number), chunk.at(number + 1) - chunk.at(number), base, reason)

    def _behind(self, chunk: Chunk) -> tuple[list[int], list[int]]:
        """The first and last offsets of the batches behind a chunk; of the next segment only the first, twice."""
        position = chunk.position + chunk.batches.size
        following = self._range.next_offset
        if position >= self._range.end:
            return ([], []) if following is None else ([following], [following])
        found = self._peek(position)
        if found is None or not found.size:
            return [], []
        bases, lasts = _offsets(found, None)
        return bases[:2].tolist(), lasts[:2].tolist()

    def _offset_before(self) -> int | None:
        """The offset behind the batch before the range; None if it cannot be trusted."""
        next_offset, is_confirmed = None, False
        for batch in self._entries.get().before(self._range):
            is_confirmed = next_offset is not None and batch.base_offset == next_offset
            next_offset = batch.last_offset + 1
        return next_offset if is_confirmed else None


def _offsets(batches: WholeBatches, expected: int | None) -> tuple[Ints, Ints]:
    """The first and the last offset of each batch. A message of magic 0 or 1 seems to follow the one before it."""
    headers = batches.headers()
    bases = numbers(headers["base_offset"])
    lasts = bases + numbers(headers["last_offset_delta"])
    for number in np.flatnonzero(headers["magic"] < MAGIC).tolist():
        (lasts[number],) = _OFFSET.unpack_from(batches.data, batches.positions[number])
        before = lasts[number - 1] + 1 if number else expected
        bases[number] = lasts[number] if before is None else min(lasts[number], before)
    return bases, lasts

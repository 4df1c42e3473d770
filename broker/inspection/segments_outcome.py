"""The results of checking some segments of a partition, which the check of later segments needs.

| carried on | why |
|---|---|
| `next_offset`, `is_end_known` | offsets only ascend, and between two segments none is missing |
| `epoch_runs` | batches of one leader epoch cross segments, and are compared with one small file |
| `open_producers`, `ended_producers`, `unlisted_producers` | a marker may end a transaction of earlier segments |

So the parts of a partition can be checked concurrently, each as if nothing came before it. A part then reports the same
problems as in a check from the beginning, except two faults that cross its border: offsets that do not ascend, and an
abort marker of an earlier transaction that the index lacks. `joined` detects that they are possible.
"""

from __future__ import annotations

import msgspec


class EpochRun(msgspec.Struct):
    """Consecutive batches of one leader epoch: their offsets, the end exclusive."""

    epoch: int
    start_offset: int
    end_offset: int


class SegmentsOutcome(msgspec.Struct):
    """The outcome of consecutive segments from `base_offset` on; `next_offset` is behind the last batch.

    `is_end_known` is False if there is damage behind that batch.
    `open_producers` are in a transaction at the end. `ended_producers` have a marker here; `unlisted_producers` are
    those of them whose first marker is an abort that the transaction index lacks.
    """

    base_offset: int = 0
    next_offset: int = 0
    is_end_known: bool = True
    segments: int = 0
    batches: int = 0
    epoch_runs: list[EpochRun] = []
    open_producers: list[int] = []
    ended_producers: list[int] = []
    unlisted_producers: list[int] = []


def joined(parts: list[SegmentsOutcome]) -> SegmentsOutcome | None:
    """The outcome of all parts of a partition, in order; None if it needs a check from the beginning."""
    open_producers: set[int] = set()
    runs: list[EpochRun] = []
    next_offset = 0
    for part in parts:
        if part.base_offset < next_offset or not open_producers.isdisjoint(part.unlisted_producers):
            return None
        next_offset = max(next_offset, part.next_offset)
        open_producers = (open_producers - set(part.ended_producers)) | set(part.open_producers)
        for run in part.epoch_runs:
            if runs and runs[-1].epoch == run.epoch:
                runs[-1] = EpochRun(run.epoch, runs[-1].start_offset, run.end_offset)
            else:
                runs.append(run)
    return SegmentsOutcome(
        base_offset=parts[0].base_offset,
        next_offset=next_offset,
        is_end_known=parts[-1].is_end_known,
        segments=sum(part.segments for part in parts),
        batches=sum(part.batches for part in parts),
        epoch_runs=runs,
        open_producers=sorted(open_producers),
        ended_producers=sorted({producer for part in parts for producer in part.ended_producers}),
        unlisted_producers=sorted({producer for part in parts for producer in part.unlisted_producers}),
    )

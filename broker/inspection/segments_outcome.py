"""What the check of some segments of a partition tells the check of those behind them.

| carried on | why |
|---|---|
| `next_offset` | offsets only go up |
| `epoch_runs` | batches of one leader epoch cross segments, and are held against one small file |
| `open_producers`, `ended_producers`, `unlisted_producers` | a marker may end a transaction of segments before |

So a partition may be checked in parts, each as if nothing came before it, and side by side. What a part finds then is
what it finds behind the others, but for two faults that cross its border: offsets that go back, and an abort marker of
a transaction begun before which the index does not list. `joined` notices that they may be there.
"""

from __future__ import annotations

import msgspec


class EpochRun(msgspec.Struct):
    """Batches of one leader epoch that follow each other: their offsets, the end exclusive."""

    epoch: int
    start_offset: int
    end_offset: int


class SegmentsOutcome(msgspec.Struct):
    """Of segments that follow each other. `base_offset` is the first one's; `next_offset` is behind the last batch.

    `open_producers` are within a transaction at the end. `ended_producers` have a marker here, and those of them are
    `unlisted_producers` whose first marker is an abort that the transaction index lacks.
    """

    base_offset: int = 0
    next_offset: int = 0
    segments: int = 0
    batches: int = 0
    epoch_runs: list[EpochRun] = []
    open_producers: list[int] = []
    ended_producers: list[int] = []
    unlisted_producers: list[int] = []


def joined(parts: list[SegmentsOutcome]) -> SegmentsOutcome | None:
    """The outcome of all parts of a partition, in their order; None where it takes a check from end to end."""
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
        segments=sum(part.segments for part in parts),
        batches=sum(part.batches for part in parts),
        epoch_runs=runs,
        open_producers=sorted(open_producers),
        ended_producers=sorted({producer for part in parts for producer in part.ended_producers}),
        unlisted_producers=sorted({producer for part in parts for producer in part.unlisted_producers}),
    )

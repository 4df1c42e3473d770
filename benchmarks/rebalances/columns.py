"""The columns of the table, computed from the events of a run; the package describes the events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

Event = Mapping[str, Any]
Interval = tuple[float, float]


class Columns(NamedTuple):
    """One row of the table; times are in seconds, `lost` counts records that no member read."""

    duplicates: float
    lost: float
    longest_without_owner: float
    without_owner: float
    two_owners: float
    errors: float


HEADINGS = (
    "duplicates read",
    "records lost",
    "longest time without an owner",
    "sum of these times",
    "time with two owners",
    "errors seen",
)


def medians(runs: Sequence[Columns]) -> Columns:
    """The median of each column, but the largest number of lost records."""
    columns = Columns(*(median(values) for values in zip(*runs, strict=True)))
    return columns._replace(lost=max(run.lost for run in runs))


def compute(events: Iterable[Event], written: Mapping[str, int]) -> Columns:
    """The columns of one run. `written` has the number of records of each partition, numbered from 0.

    A member that is paused neither reads nor holds a partition meanwhile.
    """
    ordered = sorted(events, key=lambda event: event["at"])
    (begin,) = (event["at"] for event in ordered if event["event"] == "begun")
    (end,) = (event["at"] for event in ordered if event["event"] == "over")
    since = {
        partition: max(begin, event["at"])
        for event in ordered
        if event["event"] == "created"
        for partition in event["partitions"]
    }
    reading, holding = ownership(ordered, end)
    gaps = [
        next_start - stop
        for partition, at in since.items()
        for (_, stop), (next_start, _) in pairwise([(at, at), *_union(reading[partition], at, end), (end, end)])
    ]
    reads = count_reads(ordered)
    return Columns(
        duplicates=sum(times - 1 for times in reads.values()),
        lost=sum((partition, number) not in reads for partition, count in written.items() for number in range(count)),
        longest_without_owner=max(gaps, default=0.0),
        without_owner=sum(gaps),
        two_owners=sum(_shared(holding[partition], at, end) for partition, at in since.items()),
        errors=sum(event["event"] in ("error", "crashed") for event in ordered),
    )


def count_reads(events: Iterable[Event]) -> Counter[tuple[str, int]]:
    """How often each record, a partition and a number, was read."""
    return Counter(
        (event["partition"], number) for event in events if event["event"] == "read" for number in event["numbers"]
    )


def ownership(
    ordered: Iterable[Event], end: float
) -> tuple[Mapping[str, list[Interval]], Mapping[str, list[Interval]]]:
    """The times in which a member read a partition, and those in which a member held it, by partition.

    The times of different members may overlap.
    """
    reading, holding = _Spans(), _Spans()
    for event in ordered:
        at, member, partitions = event["at"], event.get("member", ""), event.get("partitions", ())
        match event["event"]:
            case "revoking":
                reading.close(at, member, partitions)
            case kind:
                for spans in (reading, holding):
                    spans.apply(kind, at, member, partitions)
    for spans in (reading, holding):
        for member in {member for member, _ in spans.since}:
            spans.apply("closed", end, member, ())
    return reading.closed, holding.closed


class _Spans:
    """Intervals of partitions at members: open ones begin in `since`, closed ones are kept by partition."""

    def __init__(self) -> None:
        self.since: dict[tuple[str, str], float] = {}
        self.closed: defaultdict[str, list[Interval]] = defaultdict(list)
        self.paused: dict[str, list[str]] = {}

    def apply(self, event: str, at: float, member: str, partitions: Iterable[str]) -> None:
        owned = [partition for owner, partition in self.since if owner == member]
        match event:
            case "assigned":
                self.open(at, member, partitions)
            case "revoked" | "lost":
                self.close(at, member, partitions)
            case "closed" | "killed" | "crashed":
                self.close(at, member, owned)
            case "paused":
                self.paused[member] = owned
                self.close(at, member, owned)
            case "resumed":
                self.open(at, member, self.paused.pop(member, ()))

    def open(self, at: float, member: str, partitions: Iterable[str]) -> None:
        for partition in partitions:
            self.since.setdefault((member, partition), at)

    def close(self, at: float, member: str, partitions: Iterable[str]) -> None:
        for partition in partitions:
            if (begin := self.since.pop((member, partition), None)) is not None:
                self.closed[partition].append((begin, at))


def _union(intervals: Iterable[Interval], begin: float, end: float) -> list[Interval]:
    """The intervals, clipped to begin and end, in order and without overlaps."""
    joined: list[Interval] = []
    for start, stop in _clipped(intervals, begin, end):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(stop, joined[-1][1])
        else:
            joined.append((start, stop))
    return joined


def _shared(intervals: Iterable[Interval], begin: float, end: float) -> float:
    """The time that is in two or more of the intervals, clipped to begin and end."""
    shared, covered_until = 0.0, begin
    twice_until = begin
    for start, stop in _clipped(intervals, begin, end):
        overlap_end = min(stop, covered_until)
        shared += max(0.0, overlap_end - max(start, twice_until))
        twice_until = max(twice_until, overlap_end)
        covered_until = max(covered_until, stop)
    return shared


def _clipped(intervals: Iterable[Interval], begin: float, end: float) -> list[Interval]:
    clipped = ((max(start, begin), min(stop, end)) for start, stop in intervals)
    return sorted((start, stop) for start, stop in clipped if start < stop)

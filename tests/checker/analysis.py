"""The anomalies in a history. All readers used isolation.level=read_committed.

| anomaly | what |
|---|---|
| aborted read | a reader read a record of an aborted transaction, or one that nobody sent |
| lost write | a committed record is not in the log |
| duplicate | a record is at two offsets |
| inconsistent offset | one offset had two records, or a record is not at its acknowledged offset |
| reordered | the offsets of a reader did not rise |
| torn transaction | some records of a transaction are in the log and others are not |
| inconsistent committed offset | a group's offset is not that of its last committed transaction |
| stuck transaction | a decided transaction did not end, although the leaders of its partitions were alive |
| failed client | a client that nobody fenced got an error, or could not go on |
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tests.checker.history import History, Outcome, Seen, Transaction

NO_OFFSET = -1
"""The offset of a group that has committed none."""


class Anomaly(NamedTuple):
    kind: str
    what: str


def find_anomalies(history: History) -> list[Anomaly]:
    """Return every anomaly, the more telling ones first."""
    found = chain(
        _aborted_reads(history),
        _lost_writes(history),
        _torn_transactions(history),
        _duplicates(history),
        _inconsistent_offsets(history),
        _reordered(history),
        _inconsistent_committed_offsets(history),
        (Anomaly("stuck transaction", what) for what in history.stuck),
        (Anomaly("failed client", what) for what in history.failures),
    )
    return list(dict.fromkeys(found))


def _all_reads(history: History) -> Iterator[tuple[str, Seen]]:
    for reader, seen in (*history.reads.items(), ("the final reader", history.final or [])):
        for each in seen:
            yield reader, each


def _aborted_reads(history: History) -> Iterator[Anomaly]:
    writers = {write.value: each for each in history.transactions for write in each.writes}
    for reader, seen in _all_reads(history):
        writer = writers.get(seen.value)
        if writer is None:
            yield Anomaly("aborted read", f"{reader} read {seen}, which nobody sent")
        elif writer.outcome is Outcome.ABORTED:
            yield Anomaly("aborted read", f"{reader} read {seen} of the aborted transaction {writer.name}")


def _lost_writes(history: History) -> Iterator[Anomaly]:
    if history.final is None:
        return
    kept = {seen.value for seen in history.final}
    for transaction in history.transactions:
        missing = _missing(transaction, kept)
        if transaction.outcome is Outcome.COMMITTED and missing:
            yield Anomaly("lost write", f"{transaction.name} was committed without {', '.join(missing)}")


def _torn_transactions(history: History) -> Iterator[Anomaly]:
    if history.final is None:
        return
    kept = {seen.value for seen in history.final}
    for transaction in history.transactions:
        missing = _missing(transaction, kept)
        if missing and len(missing) < len(transaction.writes):
            yield Anomaly("torn transaction", f"{transaction.name} shows, but not {', '.join(missing)}")


def _missing(transaction: Transaction, kept: set[str]) -> list[str]:
    return [write.value for write in transaction.writes if write.value not in kept]


def _duplicates(history: History) -> Iterator[Anomaly]:
    places: dict[str, Seen] = {}
    for seen in history.final or []:
        first = places.setdefault(seen.value, seen)
        if first != seen:
            yield Anomaly("duplicate", f"{seen.value} is at {first} and {seen}")


def _inconsistent_offsets(history: History) -> Iterator[Anomaly]:
    values: dict[tuple[int, int], str] = {}
    acknowledged = {
        write.value: (write.partition, write.offset)
        for transaction in history.transactions
        for write in transaction.writes
        if write.offset is not None
    }
    for reader, seen in _all_reads(history):
        place = seen.partition, seen.offset
        if values.setdefault(place, seen.value) != seen.value:
            yield Anomaly("inconsistent offset", f"{place} had {values[place]}, and {reader} read {seen.value}")
        if acknowledged.get(seen.value, place) != place:
            yield Anomaly("inconsistent offset", f"{seen} was acknowledged at {acknowledged[seen.value]}")


def _reordered(history: History) -> Iterator[Anomaly]:
    for reader, reads in history.reads.items():
        last: dict[int, int] = {}
        for seen in reads:
            if seen.offset <= last.get(seen.partition, -1):
                yield Anomaly("reordered", f"{reader} read {seen} after offset {last[seen.partition]}")
            last[seen.partition] = seen.offset


def _inconsistent_committed_offsets(history: History) -> Iterator[Anomaly]:
    for group, events in history.committed_offsets.items():
        possible = {NO_OFFSET}
        for offset, outcome in events:
            if outcome is None:
                if offset not in possible:
                    what = f"{group} has offset {offset}, not {' or '.join(map(str, sorted(possible)))}"
                    yield Anomaly("inconsistent committed offset", what)
                possible = {offset}
            elif outcome is Outcome.COMMITTED:
                possible = {offset}
            elif outcome is Outcome.UNKNOWN:
                possible.add(offset)

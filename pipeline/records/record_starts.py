"""The positions of the records of decompressed batches.

The records form a chain: only the length of a record gives the position of the next one. Five methods follow it:

| batches | method | ns a record (`benchmarks/pipeline_records.py`) |
|---|---|---|
| several, of similar records | guess the record sizes of the longest batch for all, and verify the guess | 25 |
| many, of few records | in parallel: numpy follows one record of each batch in every step | 100 |
| of many records of one size | in runs: guess that the next records have the same size, and verify the guess | 20 |
| several of these | in runs, in parallel | 10 |
| of many records of various sizes | one by one | 120 |

Only the bounds of the data are checked here; the decoder of the records checks that each length leads to the next one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from odradek.pipeline.records.varints import Bytes, Ints, guess_varints, read_varints
from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.varint import read_varint

_FEW_RECORDS: Final = 48  # in a batch of so few, a run does not pay
_MANY_BATCHES: Final = 48  # from this number on, a step of numpy costs less than steps of Python
_SEVERAL_BATCHES: Final = 8
_FIRST_RUN: Final = 16  # records of each batch in the first parallel run; then four times as many
_LONGEST_RUN: Final = 256
_LONGEST_WALK: Final = 64  # the most records that are followed one by one before another run is tried


class _Guess(NamedTuple):
    """Guessed positions of records, the positions after the lengths there, and of the ends by these lengths.

    `rest` is what follows the first record of another size in a batch, as `_follow_runs_in_parallel` returns it.
    """

    starts: Ints
    after: Ints
    ends: Ints
    are_varints: bool
    rest: tuple[Ints, Ints, Ints]


def record_bounds(data: Buffer, view: Bytes, starts: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the positions of all records of batches, the positions after their lengths, and of their ends.

    `starts` and `counts` (at least 1) describe the batches. Raises RemoteProtocolError if a batch continues after the
    end of the data, or if the length of a record is not a varint.
    """
    if len(starts) > 1 and (guessed := _guess_from_longest(data, view, starts, counts)) is not None:
        found, rest = guessed.starts, guessed.rest
        if not len(rest[0]) and guessed.are_varints:
            return found, guessed.after, guessed.ends
    else:
        found, rest = np.empty(int(counts.sum()), dtype=np.int64), (starts, counts, np.cumsum(counts) - counts)
    _follow(data, view, *rest, found)
    lengths, after = read_varints(view, found)
    return found, after, after + lengths


def _follow(data: Buffer, view: Bytes, at: Ints, left: Ints, places: Ints, found: Ints) -> None:
    """Fill `found` with the positions of the records of batches that no guess has found."""
    is_small = left <= _FEW_RECORDS
    if np.count_nonzero(is_small) >= _MANY_BATCHES:
        _follow_in_parallel(view, at[is_small], left[is_small], places[is_small], found)
        at, left, places = at[~is_small], left[~is_small], places[~is_small]
    if len(at) >= _SEVERAL_BATCHES:
        at, left, places = _follow_runs_in_parallel(view, at, left, places, found)
    singles = 1
    for start, count, place in zip(at.tolist(), left.tolist(), places.tolist(), strict=True):
        singles = _follow_one_by_one(data, view, start, found[place : place + count], singles)


def _guess_from_longest(data: Buffer, view: Bytes, at: Ints, counts: Ints) -> _Guess | None:
    """Guess that the records of all batches have the sizes of those of the longest batch.

    Returns None if the first records of the batches have various sizes.
    """
    size = _sizes(view, at)
    longest = int(counts.argmax())
    if 2 * np.count_nonzero(size == size[longest]) < len(at):
        return None
    pattern = np.empty(int(counts[longest]), dtype=np.int64)
    _follow_one_by_one(data, view, int(at[longest]), pattern, 1)
    places = np.cumsum(counts) - counts
    number: Ints = np.arange(places[-1] + counts[-1]) - np.repeat(places, counts)  # of the record, in its batch
    found = np.repeat(at - pattern[0], counts)
    found += pattern[number]
    lengths, after, are_varints = guess_varints(view, found)
    ends = after + lengths
    is_other = ends[:-1] != found[1:]
    is_other[places[1:] - 1] = False  # the next record belongs to another batch
    other = np.flatnonzero(is_other)
    batch, first = np.unique(np.searchsorted(places, other, side="right") - 1, return_index=True)
    last = other[first]  # the last record of each batch that was found
    rest = ends[last], places[batch] + counts[batch] - last - 1, last + 1
    return _Guess(found, after, ends, are_varints, rest)


def _follow_in_parallel(view: Bytes, at: Ints, counts: Ints, places: Ints, found: Ints) -> None:
    by_count = np.argsort(-counts, kind="stable")
    at, counts, places = at[by_count], counts[by_count], places[by_count]
    for step in range(int(counts[0])):
        active = int(np.searchsorted(-counts, -step, side="left"))  # batches with more than `step` records
        at, places = at[:active], places[:active]
        found[places + step] = at
        lengths, after = read_varints(view, at)
        at = after + lengths


def _follow_runs_in_parallel(view: Bytes, at: Ints, left: Ints, places: Ints, found: Ints) -> tuple[Ints, Ints, Ints]:
    """Fill `found` with the positions of records of the same size as the record before, in all batches at once.

    Continues while most records are. Returns the rest: for each unfinished batch the position of the next record, the
    number of remaining records, and the index in `found`.
    """
    longest = _FIRST_RUN
    while len(at) >= _SEVERAL_BATCHES:
        size = _sizes(view, at)
        tried = np.minimum(left, longest)
        batch = np.repeat(np.arange(len(at)), tried)
        number: Ints = np.arange(len(batch)) - np.repeat(np.cumsum(tried) - tried, tried)  # of the record, in its batch
        guess = at[batch] + number * size[batch]
        is_other = np.flatnonzero(_sizes(view, guess) != size[batch])
        run: Ints = tried.copy()
        np.minimum.at(run, batch[is_other], number[is_other])
        is_in_run = number < run[batch]
        found[(places[batch] + number)[is_in_run]] = guess[is_in_run]
        at, left, places = at + run * size, left - run, places + run
        unfinished = left > 0
        at, left, places = at[unfinished], left[unfinished], places[unfinished]
        if 2 * int(run.sum()) < len(batch) or (size <= 0).any():
            break
        longest *= 4
    return at, left, places


def _sizes(view: Bytes, at: Ints) -> Ints:
    """Return the sizes, with their lengths, of the records that start at `at`; meaningless where none starts."""
    lengths, after, _ = guess_varints(view, at)
    return after + lengths - at


def _follow_one_by_one(data: Buffer, view: Bytes, at: int, found: Ints, singles: int) -> int:
    """Fill `found` with the positions of records from `at` on.

    After `singles` records, followed one by one, a run is tried. The number doubles when there is no run. It is
    returned for the next batch, which is probably similar.
    """
    number, count = 0, len(found)
    try:
        while number < count:
            until = min(number + singles, count)
            walked, at = _walk(data, at, until - number)
            found[number:until] = walked
            number = until
            run = _run_length(view, walked[-1], at, min(count - number, _LONGEST_RUN))
            if run:
                size = at - walked[-1]
                found[number : number + run] = np.arange(at, at + run * size, size)
                number += run
                at += run * size
            singles = 1 if run > 1 else min(2 * singles, _LONGEST_WALK)
    except IndexError:
        raise RemoteProtocolError("a batch has fewer records than its header claims") from None
    return singles


def _walk(data: Buffer, at: int, count: int) -> tuple[list[int], int]:
    """Return the positions of `count` records, and that of the next one."""
    starts: list[int] = []
    append = starts.append
    for _ in range(count):
        append(at)
        byte = data[at]
        if byte < 128:
            at += (byte >> 1) + 1
        elif (second := data[at + 1]) < 128:
            at += (second << 6) + (byte >> 1) - 62
        else:
            length, at = read_varint(data, at)
            if length < 0:
                raise RemoteProtocolError("the length of a record is negative")
            at += length
    return starts, at


def _run_length(view: Bytes, last: int, at: int, most: int) -> int:
    """Return how many records from `at` on, up to `most`, have the size of the record at `last`, just before them.

    The bytes of their lengths are compared at the positions where they must then be: all first bytes at once, then all
    second bytes.
    """
    size = at - last
    place = 0
    while most:
        expected = view[last + place : last + place + 1].tobytes()
        standing = view[at + place : at + place + size * most : size].tobytes()
        most = len(standing) - len(standing.lstrip(expected))
        if expected < b"\x80":
            break
        place += 1
    return most

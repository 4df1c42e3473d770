"""Where each record of decompressed batches starts: a chain, since only a record's length tells where the next one is.

| batches | way | ns a record (`benchmarks/pipeline_records.py`) |
|---|---|---|
| some, alike | as in the longest: if each length leads where the lengths of that batch do, it is they | 25 |
| many, of few records | side by side: numpy takes one record of each in every step | 100 |
| of many records, alike | in runs: if the lengths of as many equal records stand where they would, it is they | 20 |
| several of these | in runs, side by side | 10 |
| of many records, varied | one by one | 120 |

Nothing is checked but that positions stay inside the data: whoever decodes the records sees whether each length leads
from one to the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from odradek.pipeline.records.varints import Bytes, Ints, guess_varints, read_varints
from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.varint import read_varint

_FEW_RECORDS: Final = 48  # a run does not pay in a batch of so many
_MANY_BATCHES: Final = 48  # a step of numpy costs less than so many of Python
_SEVERAL_BATCHES: Final = 8
_FIRST_RUN: Final = 16  # records of each batch that runs side by side are tried with, and four times as many then
_LONGEST_RUN: Final = 256
_LONGEST_WALK: Final = 64  # records taken one by one before another run is tried, at most


def record_starts(data: Buffer, view: Bytes, starts: Ints, counts: Ints) -> Ints:
    """The positions of all records of batches whose records begin at `starts` and are `counts` many, 1 at least.

    Raises RemoteProtocolError if a batch goes on after the data end.
    """
    at, left, places = starts, counts, np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), dtype=np.int64)
    if len(at) > 1:
        at, left, places = _as_in_the_longest(data, view, at, left, places, found)
    if not len(at):
        return found
    is_small = left <= _FEW_RECORDS
    if np.count_nonzero(is_small) >= _MANY_BATCHES:
        _side_by_side(view, at[is_small], left[is_small], places[is_small], found)
        at, left, places = at[~is_small], left[~is_small], places[~is_small]
    if len(at) >= _SEVERAL_BATCHES:
        at, left, places = _runs_side_by_side(view, at, left, places, found)
    singles = 1
    for start, count, place in zip(at.tolist(), left.tolist(), places.tolist(), strict=True):
        singles = _one_after_another(data, view, start, found[place : place + count], singles)
    return found


def _as_in_the_longest(
    data: Buffer, view: Bytes, at: Ints, counts: Ints, places: Ints, found: Ints
) -> tuple[Ints, Ints, Ints]:
    """Fill `found` with the starts that records have if they are as long as those of the batch that has the most.

    Returns what is left to find, as `_runs_side_by_side`: what follows the first record of another length in a batch.
    """
    size = _sizes(view, at)
    longest = int(counts.argmax())
    if 2 * np.count_nonzero(size == size[longest]) < len(at):
        return at, counts, places
    pattern = np.empty(int(counts[longest]), dtype=np.int64)
    _one_after_another(data, view, int(at[longest]), pattern, 1)
    number: Ints = np.arange(len(found)) - np.repeat(places, counts)  # of the record, in its batch
    np.add(np.repeat(at - pattern[0], counts), pattern[number], out=found)
    ends = found + _sizes(view, found)
    is_other = ends[:-1] != found[1:]
    is_other[places[1:] - 1] = False  # what follows is another batch
    other = np.flatnonzero(is_other)
    batch, first = np.unique(np.searchsorted(places, other, side="right") - 1, return_index=True)
    last = other[first]  # of the records of a batch that were found
    return ends[last], places[batch] + counts[batch] - last - 1, last + 1


def _side_by_side(view: Bytes, at: Ints, counts: Ints, places: Ints, found: Ints) -> None:
    by_count = np.argsort(-counts, kind="stable")
    at, counts, places = at[by_count], counts[by_count], places[by_count]
    for step in range(int(counts[0])):
        active = int(np.searchsorted(-counts, -step, side="left"))  # the batches that have more records than that
        at, places = at[:active], places[:active]
        found[places + step] = at
        lengths, after = read_varints(view, at)
        at = after + lengths


def _runs_side_by_side(view: Bytes, at: Ints, left: Ints, places: Ints, found: Ints) -> tuple[Ints, Ints, Ints]:
    """Fill `found` with the starts of records that are as long as the one before them, in all batches at once.

    It goes on for as long as most records are. Returns what is left to find: of each batch that is not done the start
    of the next record, the number of records from there on, and the place in `found`.
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
    """The sizes of the records that start there, if any do, with their lengths."""
    lengths, after, _ = guess_varints(view, at)
    return after + lengths - at


def _one_after_another(data: Buffer, view: Bytes, at: int, found: Ints, singles: int) -> int:
    """Fill `found` with the starts of records from `at` on.

    Each `singles` records that are taken one by one a run is tried; that number is doubled where there is none, and
    returned for the next batch, which will be like this one.
    """
    number, count = 0, len(found)
    try:
        while number < count:
            until = min(number + singles, count)
            walked, at = _walk(data, at, until - number)
            found[number:until] = walked
            number = until
            alike = _alike(view, walked[-1], at, min(count - number, _LONGEST_RUN))
            if alike:
                size = at - walked[-1]
                found[number : number + alike] = np.arange(at, at + alike * size, size)
                number += alike
                at += alike * size
            singles = 1 if alike > 1 else min(2 * singles, _LONGEST_WALK)
    except IndexError:
        raise RemoteProtocolError("the records of a batch end before their number is reached") from None
    return singles


def _walk(data: Buffer, at: int, count: int) -> tuple[list[int], int]:
    """The starts of `count` records, and where the next one is."""
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
                raise RemoteProtocolError("a record of a length below zero")
            at += length
    return starts, at


def _alike(view: Bytes, last: int, at: int, most: int) -> int:
    """How many records from `at` on, up to `most`, have the length of the one at `last`, which is in front of them.

    The bytes of a length are compared where they must then stand: all first ones at once, then all second ones.
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

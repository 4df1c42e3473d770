"""Where each record of decompressed batches starts: a chain, since only a record's length tells where the next one is.

| batches | way | ns a record (`benchmarks/pipeline_records.py`) |
|---|---|---|
| many, of few records | side by side: numpy takes one record of each in every step | 100 |
| of many records, alike | in runs: if the lengths of as many equal records stand where they would, it is they | 20 |
| of many records, varied | one by one | 120 |

Nothing is checked but that positions stay inside the data: whoever decodes the records sees whether each length leads
from one to the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.varints import Bytes, Ints, read_varints
from protocol.errors import RemoteProtocolError
from protocol.varint import read_varint

_FEW_RECORDS: Final = 48  # a run does not pay in a batch of so many
_MANY_BATCHES: Final = 48  # a step of numpy costs less than so many of Python
_LONGEST_RUN: Final = 256
_LONGEST_WALK: Final = 64  # records taken one by one before another run is tried, at most


def record_starts(data: bytes, view: Bytes, starts: Ints, counts: Ints) -> Ints:
    """The positions of all records of batches whose records begin at `starts` and are `counts` many, in order.

    Raises RemoteProtocolError if a batch goes on after the data end.
    """
    places = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), dtype=np.int64)
    small = np.flatnonzero((counts <= _FEW_RECORDS) & (counts > 0))
    large = np.flatnonzero(counts > _FEW_RECORDS)
    if len(small) >= _MANY_BATCHES:
        _side_by_side(view, starts[small], counts[small], places[small], found)
    else:
        large = np.flatnonzero(counts > 0)
    singles = 1
    for batch in large.tolist():
        place = int(places[batch])
        singles = _one_after_another(data, int(starts[batch]), found[place : place + int(counts[batch])], singles)
    return found


def _side_by_side(view: Bytes, at: Ints, counts: Ints, places: Ints, found: Ints) -> None:
    by_count = np.argsort(-counts, kind="stable")
    at, counts, places = at[by_count], counts[by_count], places[by_count]
    for step in range(int(counts[0])):
        active = int(np.searchsorted(-counts, -step, side="left"))  # the batches that have more records than that
        at, places = at[:active], places[:active]
        found[places + step] = at
        lengths, after = read_varints(view, at)
        at = after + lengths


def _one_after_another(data: bytes, at: int, found: Ints, singles: int) -> int:
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
            alike = _alike(data, walked[-1], at, min(count - number, _LONGEST_RUN))
            if alike:
                size = at - walked[-1]
                found[number : number + alike] = np.arange(at, at + alike * size, size)
                number += alike
                at += alike * size
            singles = 1 if alike > 1 else min(2 * singles, _LONGEST_WALK)
    except IndexError:
        raise RemoteProtocolError("the records of a batch end before their number is reached") from None
    return singles


def _walk(data: bytes, at: int, count: int) -> tuple[list[int], int]:
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


def _alike(data: bytes, last: int, at: int, most: int) -> int:
    """How many records from `at` on, up to `most`, have the length of the one at `last`, which is in front of them.

    The bytes of a length are compared where they must then stand: all first ones at once, then all second ones.
    """
    size = at - last
    place = 0
    while most:
        expected = data[last + place : last + place + 1]
        standing = data[at + place : at + place + size * most : size]
        most = len(standing) - len(standing.lstrip(expected))
        if expected < b"\x80":
            break
        place += 1
    return most

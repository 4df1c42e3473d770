"""Where each record of decompressed batches starts: a chain, since only a record's length tells where the next one is.

Many batches are walked side by side, a record of each in every step, by numpy. A step costs the same for one batch as
for a hundred, so once few go on, each is walked by itself to its end.

Nothing is checked but that positions stay inside the data: whoever decodes the records sees whether each length leads
from one to the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.varints import Bytes, Ints, read_varints
from protocol.errors import RemoteProtocolError
from protocol.varint import read_varint

_SIDE_BY_SIDE: Final = 64  # batches from which a step of numpy is cheaper than so many of Python


def record_starts(data: bytes, view: Bytes, starts: Ints, counts: Ints) -> Ints:
    """The positions of all records of batches whose records begin at `starts` and are `counts` many, in order.

    Raises RemoteProtocolError if a batch goes on after the data end.
    """
    first = np.cumsum(counts) - counts
    found = np.empty(int(counts.sum()), dtype=np.int64)
    by_count = np.argsort(-counts, kind="stable")
    descending = counts[by_count]
    at, place = starts[by_count], first[by_count]
    steps = int(descending[_SIDE_BY_SIDE - 1]) if len(counts) >= _SIDE_BY_SIDE else 0
    active = np.searchsorted(-descending, -np.arange(steps), side="left")
    for step in range(steps):
        going_on = slice(active[step])
        found[place[going_on] + step] = at[going_on]
        lengths, after = read_varints(view, at[going_on])
        at[going_on] = after + lengths
    for batch in range(int(np.searchsorted(-descending, -steps, side="left"))):
        begin, end = int(place[batch]) + steps, int(place[batch] + descending[batch])
        found[begin:end] = _walk(data, int(at[batch]), end - begin)
    return found


def _walk(data: bytes, at: int, count: int) -> list[int]:
    starts: list[int] = []
    append = starts.append
    try:
        for _ in range(count):
            append(at)
            byte = data[at]
            if byte < 128:
                at += (byte >> 1) + 1
            elif (second := data[at + 1]) < 128:
                at += (second << 6) + (byte >> 1) - 62
            else:
                length, at = read_varint(data, at)
                at += length
                if length < 0:
                    break
    except IndexError:
        raise RemoteProtocolError("the records of a batch end before their number is reached") from None
    if len(starts) < count:
        raise RemoteProtocolError("a record of a length below zero")
    return starts

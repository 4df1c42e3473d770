"""The batches in a buffer: found by one walk over their lengths, then all their headers at once.

```
data       | header | records | header | records … | header | records | cut off, or what can be no batch
positions  0                  p1                 …                    size
```
The walk is the one loop that there is in Python for each batch, and needs two numbers of it. The fields of the headers
are arrays. Messages of magic 0 and 1 are found too, and in place of their headers stand zeros.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from odradek.pipeline.records.varints import Ints
from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, read_batch_header
from odradek.protocol.records.message_set import MIN_LENGTHS

Headers = NDArray[np.void]  # of `HEADER`

# `odradek.protocol.records.batch_header` says what these are.
HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("records_count", ">i4"),
    ]
)
_BYTES: Final = np.dtype((np.void, BATCH_HEADER_SIZE))  # a header that is copied as one thing
_START: Final = Struct(">qiiB")  # base offset, length, leader epoch, magic: of old messages only offset, length, magic


class WholeBatches(NamedTuple):
    """What `data` begins with: complete batches, or old messages, from each of the `positions` to the next.

    The last position is where they end. `next_offset` is the one behind them, None without any. If what follows is cut
    off, `needed` is how many bytes it takes, or 0 if not even that is there; if it can be no batch, `flaw` says why.
    """

    data: memoryview
    positions: list[int]
    next_offset: int | None
    needed: int = 0
    flaw: str | None = None

    @property
    def size(self) -> int:
        """Bytes of the complete batches."""
        return self.positions[-1]

    def headers(self) -> Headers:
        """The header of each batch."""
        starts = np.array(self.positions[:-1], dtype=np.int64)
        view = np.frombuffer(self.data, dtype=np.uint8)
        is_batch = view[starts + MAGIC_POSITION] >= 2
        headers = np.zeros(len(starts), dtype=_BYTES)
        if is_batch.any():
            at_every_byte = np.ndarray(len(view) - BATCH_HEADER_SIZE + 1, _BYTES, self.data, strides=(1,))
            headers[is_batch] = at_every_byte[starts[is_batch]]
        return headers.view(HEADER)


def whole_batches(raw: Buffer) -> WholeBatches:
    """Find the complete batches of any format that `raw` begins with.

    They end where one is cut off, as the last one of an answer to Fetch may be, or has an impossible length.
    """
    data = memoryview(raw)
    at, end = 0, len(data)
    positions = [at]
    needed, flaw = 0, None
    while end - at > MAGIC_POSITION:
        _, length, _, magic = _START.unpack_from(data, at)
        if magic >= len(MIN_LENGTHS):
            flaw = f"a batch of magic {magic}, which is none"
            break
        if length < MIN_LENGTHS[magic]:
            flaw = f"a batch of length {length}, less than its header takes"
            break
        if at + LOG_OVERHEAD + length > end:
            needed = LOG_OVERHEAD + length
            break
        at += LOG_OVERHEAD + length
        positions.append(at)
    return WholeBatches(data, positions, _next_offset(data, positions), needed, flaw)


def _next_offset(data: memoryview, positions: list[int]) -> int | None:
    if len(positions) == 1:
        return None
    last = positions[-2]
    base_offset, _, _, magic = _START.unpack_from(data, last)
    return read_batch_header(data, last).next_offset if magic >= 2 else base_offset + 1


def numbers(field: NDArray[Any]) -> Ints:
    """A field of headers as it is calculated with."""
    return field.astype(np.int64)

"""The complete batches of a buffer: their positions, by following their lengths, then all headers as arrays.

```
data       | header | records | header | records … | header | records | an incomplete batch, or damage
positions  0                  p1                 …                    size
```
Following the lengths is the only Python loop over batches; it reads two numbers of each. Messages of magic 0 and 1 are
found, too; their headers are zeros.
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

# `odradek.protocol.records.batch_header` describes the fields.
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
_BYTES: Final = np.dtype((np.void, BATCH_HEADER_SIZE))  # a header, copied as a whole
_START: Final = Struct(">qiiB")  # base offset, length, leader epoch, magic: of old messages only offset, length, magic


class WholeBatches(NamedTuple):
    """The complete batches, or old messages, at the start of `data`: each from one of the `positions` to the next.

    The last position is their end. `next_offset` is the offset after them, None if there are none. If an incomplete
    batch follows, `needed` is its size, or 0 if its length is incomplete, too. If damage follows, `flaw` describes it.
    """

    data: memoryview
    positions: list[int]
    next_offset: int | None
    needed: int = 0
    flaw: str | None = None

    @property
    def size(self) -> int:
        """The bytes of the complete batches."""
        return self.positions[-1]

    def headers(self) -> Headers:
        """Return the header of each batch."""
        starts = np.array(self.positions[:-1], dtype=np.int64)
        view = np.frombuffer(self.data, dtype=np.uint8)
        is_batch = view[starts + MAGIC_POSITION] >= 2
        headers = np.zeros(len(starts), dtype=_BYTES)
        if is_batch.any():
            at_every_byte = np.ndarray(len(view) - BATCH_HEADER_SIZE + 1, _BYTES, self.data, strides=(1,))
            headers[is_batch] = at_every_byte[starts[is_batch]]
        return headers.view(HEADER)


def whole_batches(raw: Buffer) -> WholeBatches:
    """Find the complete batches, of any format, at the start of `raw`.

    They end before an incomplete batch, which a Fetch response may end with, or before an impossible length.
    """
    data = memoryview(raw)
    at, end = 0, len(data)
    positions = [at]
    needed, flaw = 0, None
    while end - at > MAGIC_POSITION:
        _, length, _, magic = _START.unpack_from(data, at)
        if magic >= len(MIN_LENGTHS):
            flaw = f"a batch has the unknown magic {magic}"
            break
        if length < MIN_LENGTHS[magic]:
            flaw = f"a batch has length {length}, less than that of its header"
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
    """Return a field of headers as native integers of 64 bits."""
    return field.astype(np.int64)

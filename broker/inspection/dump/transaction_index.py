"""`.txnindex`: the aborted transactions that ended in a segment; the file exists only if there are any.

```
 0 version             int16   0
 2 producer id         int64
10 first offset        int64   of the transaction, which may be in an earlier segment
18 last offset         int64   of the control record that aborted it
26 last stable offset  int64   after that
```
Bytes behind the last whole entry are ignored. Source: Kafka `AbortedTxn`, which reads only the first of the two bytes
of a version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from odradek.broker.inspection.dump.complaints import DumpError
from odradek.broker.inspection.dump.index_file import base_offset_of

_ENTRY: Final = struct.Struct(">bxqqqq")


def dump_transaction_index(path: str) -> Iterator[str]:
    base_offset_of(path)
    data = Path(path).read_bytes()  # Differs from Kafka: a missing file is an error here, as every other one is there
    entries = list(_ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]))
    for version, *_ in entries:
        if version > 0:
            raise DumpError(f"{path}: an aborted transaction of version {version}, where 0 is the newest")
    for version, producer_id, first_offset, last_offset, last_stable_offset in entries:
        yield (
            f"version: {version} producerId: {producer_id} firstOffset: {first_offset}"
            f" lastOffset: {last_offset} lastStableOffset: {last_stable_offset}\n"
        )

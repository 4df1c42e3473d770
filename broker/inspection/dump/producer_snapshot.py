"""`.snapshot`: the producers of a partition at the offset in the file's name, one a line.

```
0 version  int16    1
2 crc      uint32   CRC-32C of all that follows
6 entries  array    `odradek.protocol.stored_records.producer_snapshot`
```
A producer whose last batch is not in the log any more has no columns for it. A fault of the file is one line on
standard error, and the next file is dumped. Source: Kafka `ProducerStateManager.readSnapshot`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from odradek.broker.inspection.dump.complaints import Complaint
from odradek.broker.inspection.dump.java import INT32_MAX, int32, optional_long
from odradek.broker.inspection.dump.message_json import MalformedMessageError, Values, read_message
from odradek.protocol.checksum import crc32c
from odradek.protocol.stored_records.producer_snapshot import ProducerSnapshot

_VERSION: Final = 1
_ENTRIES_POSITION: Final = 6


def dump_producer_snapshot(path: str) -> Iterator[str]:
    data = Path(path).read_bytes()
    try:
        snapshot = _read(data)
    except MalformedMessageError as error:
        yield Complaint(f"Snapshot failed schema validation: {error}\n")
        return
    computed = crc32c(data[_ENTRIES_POSITION:])
    if snapshot["crc"] != computed:
        yield Complaint(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {snapshot['crc']}. Computed crc: {computed}\n"
        )
        return
    for entry in snapshot["producer_entries"]:
        yield _line(entry)


def _read(data: bytes) -> Values:
    if len(data) < 2:
        raise MalformedMessageError("null")
    version = struct.unpack_from(">h", data)[0]
    if version != _VERSION:
        raise MalformedMessageError(f"Snapshot contained an unknown file version {version}")
    snapshot, _ = read_message(ProducerSnapshot, version, data, 2)
    return snapshot


def _line(entry: dict[str, Any]) -> str:
    first_offset = entry["current_txn_first_offset"]
    line = (
        f"producerId: {entry['producer_id']} producerEpoch: {entry['epoch']}"
        f" coordinatorEpoch: {entry['coordinator_epoch']}"
        f" currentTxnFirstOffset: {optional_long(first_offset if first_offset >= 0 else None)}"
        f" lastTimestamp: {entry['timestamp']}"
    )
    if entry["last_offset"] >= 0:
        last_sequence, offset_delta = entry["last_sequence"], entry["offset_delta"]
        line += (
            f" firstSequence: {_decrement_sequence(last_sequence, offset_delta)} lastSequence: {last_sequence}"
            f" lastOffset: {entry['last_offset']} offsetDelta: {offset_delta} timestamp: {entry['timestamp']}"
        )
    return line + "\n"


def _decrement_sequence(sequence: int, decrement: int) -> int:
    """Subtract as Kafka does: below 0 comes 2^31 - 1."""
    if sequence < decrement:
        return int32(INT32_MAX - (decrement - sequence) + 1)
    return int32(sequence - decrement)

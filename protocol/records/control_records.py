"""Control records: records that brokers write into partitions for themselves, and consumers skip (KIP-98).

```
key    version int16, 0 | type int16 (ControlRecordType)
value  of ABORT and COMMIT: version int16, 0 | coordinator epoch int32
```
A control batch (attributes bit 5) holds one record and is never compressed. The marker that ends a transaction is such
a batch in each of its partitions: transactional, with producer id and epoch, without a sequence. Readers decode newer
versions as version 0, because they begin with the same fields. Source: Kafka `ControlRecordType`,
`EndTransactionMarker`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.record_iterator import Record

_KEY: Final = struct.Struct(">hh")
_END_TXN_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlRecordType(IntEnum):
    """The type of a control record; those from 2 on are in KRaft's metadata log."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    """The marker that ends a producer's transaction in one partition: `type` is COMMIT or ABORT."""

    type: ControlRecordType
    coordinator_epoch: int


def control_record_type(key: bytes | None) -> ControlRecordType:
    """Return the type in the key of a control record, UNKNOWN for one that is not listed here.

    Raises RemoteProtocolError for a malformed key.
    """
    if key is None or len(key) < _KEY.size:
        raise RemoteProtocolError("the key of a control record has less than 4 bytes")
    version, type_id = _KEY.unpack_from(key)
    if version < 0:
        raise RemoteProtocolError(f"control record key of version {version}")
    try:
        return ControlRecordType(type_id)
    except ValueError:
        return ControlRecordType.UNKNOWN


def parse_end_txn_marker(record: Record) -> EndTxnMarker:
    """Decode the marker in a control record. Raises RemoteProtocolError for another control record."""
    marker_type = control_record_type(record.key)
    if marker_type not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        raise RemoteProtocolError(f"a control record of type {marker_type.name} does not end a transaction")
    value = record.value
    if value is None or len(value) < _END_TXN_VALUE.size:
        raise RemoteProtocolError("the end of a transaction has less than 6 bytes")
    version, coordinator_epoch = _END_TXN_VALUE.unpack_from(value)
    if version < 0:
        raise RemoteProtocolError(f"end of a transaction of version {version}")
    return EndTxnMarker(marker_type, coordinator_epoch)


def build_end_txn_marker(
    marker: EndTxnMarker,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the control batch that ends a transaction of this producer."""
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )
    builder.append(timestamp, _KEY.pack(_VERSION, marker.type), _END_TXN_VALUE.pack(_VERSION, marker.coordinator_epoch))
    return builder.build(base_offset, leader_epoch)

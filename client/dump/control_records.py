"""What a control record says, behind its line: ` endTxnMarker: COMMIT coordinatorEpoch: 0`."""

from __future__ import annotations

import struct

from client.dump.errors import DumpError
from protocol.control_records import ControlRecordType, control_record_type, parse_end_txn_marker
from protocol.records import Record


def control_text(key: bytes | None, value: bytes | None) -> str:
    """Raises DumpError or RemoteProtocolError for what is not a control record."""
    kind = control_record_type(key)
    assert key is not None
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = parse_end_txn_marker(Record(0, 0, key, value, []))
        return f" endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    if kind == ControlRecordType.UNKNOWN:
        return f" controlType: UNKNOWN({struct.unpack_from('>h', key, 2)[0]})"
    raise DumpError(f"a control record of type {kind.name}, which belongs to the log of a Raft quorum")

"""The contents of a control record, printed at the end of its line.

| type | printed |
|---|---|
| ABORT, COMMIT | ` endTxnMarker: COMMIT coordinatorEpoch: 0` |
| those of a Raft quorum | ` LeaderChange: {"version":0,…}`, ` KRaftVoters {…}`: a label and JSON |
| others | ` controlType: UNKNOWN(7)` |

Kafka decodes the messages of a quorum as version 0 and prints them with the version in them. Source: Kafka
`DumpLogSegments.printControlRecord`, `ControlRecordUtils`.
"""

from __future__ import annotations

import struct
from typing import Final

from odradek.broker.inspection.dump.complaints import DumpError
from odradek.broker.inspection.dump.message_json import MalformedMessageError, json_text, json_values, read_message
from odradek.protocol.records.control_records import ControlRecordType, control_record_type, parse_end_txn_marker
from odradek.protocol.records.record_iterator import Record
from odradek.protocol.schema import Message
from odradek.protocol.stored_records.raft_control import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

_RAFT_MESSAGES: Final[dict[ControlRecordType, tuple[str, type[Message]]]] = {
    ControlRecordType.LEADER_CHANGE: (" LeaderChange: ", LeaderChangeMessage),
    ControlRecordType.SNAPSHOT_HEADER: (" SnapshotHeader ", SnapshotHeaderRecord),
    ControlRecordType.SNAPSHOT_FOOTER: (" SnapshotFooter ", SnapshotFooterRecord),
    ControlRecordType.KRAFT_VERSION: (" KRaftVersion ", KRaftVersionRecord),
    ControlRecordType.KRAFT_VOTERS: (" KRaftVoters ", VotersRecord),
}


def control_text(key: bytes | None, value: bytes | None) -> str:
    """The text for a control record. Raises DumpError or RemoteProtocolError for another record."""
    kind = control_record_type(key)
    assert key is not None
    if kind in _RAFT_MESSAGES:
        return _raft_text(*_RAFT_MESSAGES[kind], value)
    if kind == ControlRecordType.UNKNOWN:
        return f" controlType: UNKNOWN({struct.unpack_from('>h', key, 2)[0]})"
    marker = parse_end_txn_marker(Record(0, 0, key, value, []))
    return f" endTxnMarker: {marker.type.name} coordinatorEpoch: {marker.coordinator_epoch}"


def _raft_text(label: str, cls: type[Message], value: bytes | None) -> str:
    if value is None:
        raise DumpError(f"a control record without the {cls.__name__} that it should hold")
    try:
        values, _ = read_message(cls, 0, value, 0)
    except MalformedMessageError as error:
        raise DumpError(f"the {cls.__name__} of a control record is malformed: {error}") from None
    return label + json_text(json_values(cls, values["version"], values))

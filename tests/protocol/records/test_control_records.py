from __future__ import annotations

from collections.abc import Iterator

import pytest

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import BATCH_HEADER_SIZE, FLAGS_POSITION, batch_headers
from odradek.protocol.records.control_records import (
    ControlRecordType,
    EndTxnMarker,
    build_end_txn_marker,
    control_record_type,
    parse_end_txn_marker,
    read_end_txn_marker,
)
from odradek.protocol.records.record_iterator import Record, iter_records
from tests.protocol.records import golden


def test_markers_of_a_broker_are_read_and_built_again_to_the_same_bytes() -> None:
    data = golden.log_bytes("transactional")
    types = []
    for position, header in batch_headers(data):
        if header.is_control:
            [record] = iter_records(data, position, header)
            marker = parse_end_txn_marker(record)
            types.append(marker.type.name)
            built = build_end_txn_marker(
                marker,
                header.producer_id,
                header.producer_epoch,
                record.timestamp,
                header.base_offset,
                header.partition_leader_epoch,
            )
            assert built == data[position : position + header.size]
            assert read_end_txn_marker(built) == marker
    assert types == ["COMMIT", "ABORT", "COMMIT", "COMMIT", "ABORT", "COMMIT"]


def record(key: str | None, value: str | None) -> Record:
    return Record(0, 0, None if key is None else bytes.fromhex(key), value and bytes.fromhex(value), [])


def test_newer_versions_are_read_as_the_first() -> None:
    newer = record("0005 0001 ffff", "0009 00000007 ffff")
    assert parse_end_txn_marker(newer) == EndTxnMarker(ControlRecordType.COMMIT, 7)


def other_batches() -> Iterator[bytes]:
    """Control batches that are no markers in the usual layout."""
    marker = build_end_txn_marker(EndTxnMarker(ControlRecordType.ABORT, 3), 7, 0, 9)
    for position, value in (
        (FLAGS_POSITION, marker[FLAGS_POSITION] | Codec.ZSTD),
        (BATCH_HEADER_SIZE, 0x22),  # the record's length
        (BATCH_HEADER_SIZE + 6, 1),  # the key's version
        (BATCH_HEADER_SIZE + 8, ControlRecordType.LEADER_CHANGE),
        (BATCH_HEADER_SIZE + 9, 0x0E),  # the value's length
        (BATCH_HEADER_SIZE + 11, 1),  # the value's version
        (BATCH_HEADER_SIZE + 16, 2),  # headers
    ):
        changed = bytearray(marker)
        changed[position] = value
        yield bytes(changed)
    yield bytes(marker) + b"\0"


def test_other_control_batches_are_left_to_the_general_parser() -> None:
    assert [read_end_txn_marker(batch) for batch in other_batches()] == [None] * 8


@pytest.mark.parametrize("type_id", range(7))
def test_types_by_number(type_id: int) -> None:
    assert control_record_type(b"\0\0\0" + bytes([type_id])) == type_id


@pytest.mark.parametrize("key", ["00000007", "0000ffff", "00007fff"])
def test_types_without_a_name_are_unknown(key: str) -> None:
    assert control_record_type(bytes.fromhex(key)) is ControlRecordType.UNKNOWN


@pytest.mark.parametrize("key", [None, "", "000000", "ffff0001"])
def test_a_malformed_key_is_refused(key: str | None) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_end_txn_marker(record(key, "000000000007"))


@pytest.mark.parametrize(
    ("key", "value"),
    [("00000002", "000000000007"), ("00000001", None), ("00000001", "0000000000"), ("00000001", "ffff00000007")],
)
def test_other_control_records_are_no_markers(key: str, value: str | None) -> None:
    with pytest.raises(RemoteProtocolError):
        parse_end_txn_marker(record(key, value))

from __future__ import annotations

from odradek.broker.explain.record_copying import MOST_BATCHES, MOST_DECOMPRESSED, READ_BYTES, copy_batches
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.control_records import ControlRecordType, EndTxnMarker, build_end_txn_marker
from tests.handlers.requests import batch


class Slice:
    """A file slice with these bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read_start(self, length: int) -> bytes:
        return self.data[:length]


class ReleasedSlice(Slice):
    def read_start(self, length: int) -> bytes:
        raise ValueError("the slice was released")


def test_a_few_records_of_a_batch_are_shown() -> None:
    [shown], _ = copy_batches(batch(*(str(index).encode() for index in range(1000))))

    assert "1000 records" in shown["batch"]
    assert [record["value"] for record in shown["records"][:-1]] == ['"0"', '"1"', '"2"']
    assert shown["records"][-1] == "… 997 more"


def test_a_few_batches_are_shown() -> None:
    one = batch(b"v")
    batches, _ = copy_batches(one * (MOST_BATCHES + 3))

    assert len(batches) == MOST_BATCHES + 1
    assert batches[-1] == f"… {3 * len(one)} bytes more"


def test_keys_values_and_headers_are_cut_at_64_bytes() -> None:
    builder = BatchBuilder()
    builder.append(0, b"\xff" * 65, b"v" * 1000, [("trace", b"h" * 65), ("none", None)])

    [shown], _ = copy_batches(bytes(builder.build()))

    [record] = shown["records"]
    assert record["key"] == "0x" + "ff" * 64 + "… (65 bytes)"
    assert record["value"] == '"' + "v" * 64 + '"… (1000 bytes)'
    assert record["headers"] == ['trace="' + "h" * 64 + '"… (65 bytes)', "none=null"]


def test_compressed_records_are_decompressed() -> None:
    [shown], _ = copy_batches(batch(b"value", codec=Codec.GZIP))

    assert shown["records"][0]["value"] == '"value"'


def test_records_that_expand_to_much_are_not_shown() -> None:
    [shown], _ = copy_batches(batch(bytes(MOST_DECOMPRESSED), codec=Codec.GZIP))

    [reason] = shown["records"]
    assert "value" not in reason
    assert str(MOST_DECOMPRESSED) in reason


def test_of_a_file_slice_only_the_start_is_read() -> None:
    [shown], _ = copy_batches(Slice(batch(b"small", b"x" * READ_BYTES)))

    assert shown["records"][0]["value"] == '"small"'
    assert "crc" not in shown["batch"]


def test_a_record_that_is_longer_than_what_is_read_is_not_shown() -> None:
    [shown], _ = copy_batches(Slice(batch(b"x" * READ_BYTES)))

    [reason] = shown["records"]
    assert reason.startswith("not shown: ")


def test_a_released_slice_shows_its_length() -> None:
    [shown], _ = copy_batches(ReleasedSlice(batch(b"v")))

    assert shown == f"{len(batch(b'v'))} bytes, which cannot be read: the slice was released"


def test_the_marker_of_a_transaction_has_its_type() -> None:
    marker = build_end_txn_marker(EndTxnMarker(ControlRecordType.ABORT, 0), 7, 1, 0)

    [shown], _ = copy_batches(bytes(marker))

    assert shown["records"] == [{"offset": 0, "control": "ABORT"}]


def test_bytes_that_are_no_batch_are_said_to_be_none() -> None:
    [shown], _ = copy_batches(b"\x03" * 100)

    assert shown.startswith("not a batch: ")


def test_a_wrong_checksum_is_shown() -> None:
    damaged = bytearray(batch(b"value"))
    damaged[-2] ^= 1

    [shown], _ = copy_batches(bytes(damaged))

    assert shown["batch"].endswith("crc WRONG")

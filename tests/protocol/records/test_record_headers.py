"""The headers of records, written and read."""

from __future__ import annotations

import pytest

from odradek.protocol.errors import LocalProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    read_batch_header,
)
from odradek.protocol.records.record_headers import Header
from odradek.protocol.records.record_iterator import iter_records
from tests.protocol.records.built import Batch


@pytest.mark.parametrize("length", [0, 1, 63, 64, 127, 128, 9000])
def test_equal_headers_are_encoded_and_decoded_repeatedly(length: int) -> None:
    """Short keys are cached; keys that are not text are refused every time."""
    headers: list[Header] = [("ж" * (length // 2) + "x" * (length % 2), b"v" * length), ("\udcff" * (length % 2), None)]
    builder = BatchBuilder()
    for _ in range(3):
        builder.append(0, None, None, headers)
        with pytest.raises(LocalProtocolError, match="not text"):
            builder.append(0, None, None, [("\ud800", b"")])
    data = builder.build()
    assert [record.headers for record in iter_records(data, 0, read_batch_header(data))] == [headers] * 3


def test_a_header_key_that_is_not_utf_8_is_read_and_written_unchanged() -> None:
    builder = BatchBuilder()
    builder.append(0, None, None, [("\udcffé", b"v")])
    batch = Batch(builder.build())
    assert b"\xff\xc3\xa9" in batch.data
    again = BatchBuilder()
    again.append(0, None, None, batch.records()[0].headers)
    assert again.build() == batch.data

"""Recompression of a batch."""

from __future__ import annotations

import pytest

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.records.batch_header import (
    crc_is_valid,
)
from odradek.protocol.records.recompression import recompress
from tests.protocol.records.built import Batch, batch_of


@pytest.mark.parametrize("source", Codec)
@pytest.mark.parametrize("target", Codec)
def test_recompression_changes_the_codec_and_nothing_else(source: Codec, target: Codec) -> None:
    before = batch_of(b"a" * 500, b"b", codec=source, producer_id=4, producer_epoch=0, base_sequence=0)
    buffer = b"xxx" + before.data
    after = Batch(recompress(buffer, 3, before.header, target))
    assert after.records() == before.records()
    assert after.header.codec is target
    assert crc_is_valid(after.data, 0, after.header)
    assert after.header.size == len(after.data)
    same = {"crc": 0, "batch_length": 0, "attributes": 0}
    assert after.header.replace(**same) == before.header.replace(**same)

"""The bounds of what the iterator decodes: 64 bits, and the size of decompressed records."""

from __future__ import annotations

import struct

import pytest

from odradek.protocol.compression.codecs import Codec
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.record_iterator import iter_records
from tests.protocol.records.built import Batch, batch_of


@pytest.mark.parametrize("base", [(1 << 63) - 1, -(1 << 63)])
def test_timestamps_at_the_ends_of_64_bits(base: int) -> None:
    step = -1 if base > 0 else 1
    builder = BatchBuilder()
    for delta in (0, 1, 63, 64, 8191, 8192):
        builder.append(base + step * delta, None, b"")
    batch = Batch(builder.build())
    assert [record.timestamp - base for record in batch.records()] == [step * d for d in (0, 1, 63, 64, 8191, 8192)]
    for beyond in (1, 70, 9000):  # encoded in one, two and three bytes
        batch = batch_of(b"", timestamp=0)
        builder = BatchBuilder()
        builder.append(0, None, b"")
        builder.append(-step * beyond, None, b"")
        data = builder.build()
        struct.pack_into(">q", data, 27, base)
        # Beyond one end are the numbers of the other end, as in Java.
        assert Batch(data).records()[1].timestamp == -base - 1 - step * (beyond - 1)


@pytest.mark.parametrize("delta", [1, 70, 9000])
def test_offsets_beyond_64_bits_are_refused(delta: int) -> None:
    builder = BatchBuilder()
    builder.append(0, None, b"", offset_delta=delta)
    assert Batch(builder.build((1 << 63) - 1 - delta)).records()[0].offset == (1 << 63) - 1
    with pytest.raises(RemoteProtocolError, match="64 bits"):
        Batch(builder.build((1 << 63) - delta)).records()


def test_records_that_expand_beyond_the_limit_are_refused() -> None:
    batch = batch_of(bytes(100_000), codec=Codec.GZIP)
    assert len(list(iter_records(batch.data, 0, batch.header, max_decompressed=100_020))) == 1
    with pytest.raises(RemoteProtocolError):
        iter_records(batch.data, 0, batch.header, max_decompressed=100_000)

"""Batches that tests build."""

from __future__ import annotations

import dataclasses

from odradek.protocol.records.batch_builder import BatchBuilder
from odradek.protocol.records.batch_header import (
    BatchHeader,
    read_batch_header,
)
from odradek.protocol.records.record_iterator import Record, iter_records


@dataclasses.dataclass
class Batch:
    data: bytearray

    @property
    def header(self) -> BatchHeader:
        return read_batch_header(self.data)

    def records(self) -> list[Record]:
        return list(iter_records(self.data, 0, self.header))


def batch_of(*values: bytes, timestamp: int = 1000, **options: object) -> Batch:
    builder = BatchBuilder(**options)  # type: ignore[arg-type]
    for i, value in enumerate(values):
        builder.append(timestamp + i, None, value)
    return Batch(builder.build())

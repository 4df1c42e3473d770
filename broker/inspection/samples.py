"""The codecs of a partition's batches and their compression ratio, from a few batches of every segment.

To read and decompress the whole log would take long. Eight batches, spread evenly over a segment by its offset index,
show the codecs unless one is rare, and the ratio to a few hundredths.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.broker.storage.offline.stored_partition import StoredPartition
from odradek.broker.storage.segment import Segment
from odradek.protocol.compression.codecs import Codec, decompress
from odradek.protocol.records.batch_header import (
    BATCH_HEADER_SIZE,
    MAGIC,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    read_batch_header,
)
from odradek.protocol.records.message_set import read_message_header

PER_SEGMENT = 8


class Samples:
    """The codecs and sizes of the sampled batches. Raises as `StoredPartition` if the log cannot be read."""

    def __init__(self, partition: StoredPartition) -> None:
        self.batches = 0
        self.codecs: set[Codec] = set()
        self.first_timestamp = NO_TIMESTAMP
        self._stored = 0
        self._decompressed = 0
        for segment in partition.segments:
            for data in _some_batches(segment):
                self._take(data)

    @property
    def ratio(self) -> float | None:
        """Bytes of records before compression divided by those after it; None without a batch."""
        return self._decompressed / self._stored if self._stored else None

    def _take(self, data: bytes) -> None:
        self.batches += 1
        if data[MAGIC_POSITION] != MAGIC:
            self.codecs.add(read_message_header(data).codec)
            return
        header = read_batch_header(data)
        self.codecs.add(header.codec)
        if self.first_timestamp == NO_TIMESTAMP and not header.has_delete_horizon:
            self.first_timestamp = header.base_timestamp
        if header.records_count:
            records = data[BATCH_HEADER_SIZE:]
            self._stored += len(records)
            self._decompressed += len(decompress(header.codec, records)) if header.codec else len(records)


def _some_batches(segment: Segment) -> Iterator[bytes]:
    offsets = segment.indexes.offsets
    positions = {0} if segment.size else set()
    for part in range(PER_SEGMENT - 1):
        if offsets.count:
            positions.add(offsets.entry(offsets.count * part // (PER_SEGMENT - 1)).position)
    for position in sorted(positions):
        batch = segment.log.batch_at(position)
        if batch is not None:
            yield segment.log.read(batch)

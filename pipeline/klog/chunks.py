"""Whole batches from a file, and parts of them."""

from __future__ import annotations

from typing import NamedTuple

from odradek.pipeline.records.whole_batches import WholeBatches
from odradek.protocol.checksum import crc32c
from odradek.protocol.records.batch_header import CRC_START, MAGIC, MAGIC_POSITION, read_batch_header
from odradek.protocol.records.message_set import message_crc_is_valid, read_message_header


class Chunk(NamedTuple):
    """Whole batches at `position` of the file.

    Their memory is reused for the next chunk: they are valid until that is requested.
    """

    position: int
    batches: WholeBatches

    def at(self, number: int) -> int:
        """The position of a batch in the file; that of the end for the number behind the last one."""
        return self.position + self.batches.positions[number]

    def part(self, first: int, last: int) -> Chunk:
        """The batches with numbers in [first, last)."""
        return Chunk(self.at(first), part(self.batches, first, last))


def part(batches: WholeBatches, first: int, last: int) -> WholeBatches:
    """The batches with numbers in [first, last)."""
    positions = batches.positions
    begin = positions[first]
    return WholeBatches(batches.data[begin : positions[last]], [at - begin for at in positions[first : last + 1]], None)


def is_sound(batches: WholeBatches, number: int) -> bool:
    """Whether the checksum of a batch is right. It does not cover the base offset and the length."""
    data = batches.data[batches.positions[number] : batches.positions[number + 1]]
    if data[MAGIC_POSITION] < MAGIC:
        return message_crc_is_valid(data, 0, read_message_header(data))
    return crc32c(data[CRC_START:]) == read_batch_header(data).crc

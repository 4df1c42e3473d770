"""A `.snapshot` file: the producers of a partition at the offset in the file name, after the version, int16, 1."""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, u32


class ProducerEntry(Structure):
    producer_id: i64 = 0
    epoch: i16 = 0
    last_sequence: i32 = 0
    last_offset: i64 = 0
    offset_delta: i32 = 0
    timestamp: i64 = 0
    coordinator_epoch: i32 = 0
    current_txn_first_offset: i64 = 0


@message(versions=(1, 1))
class ProducerSnapshot(Message):
    """Version 1. The checksum is the CRC-32C of all bytes after it."""

    crc: u32 = 0
    producer_entries: list[ProducerEntry] = []

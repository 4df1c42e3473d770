"""The checks of batches that a follower fetched from its leader: of magic 2, and the messages of older formats."""

from __future__ import annotations

from collections.abc import Iterator

from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.records.batch_header import (
    LENGTH_POSITION,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_POSITION,
    BatchHeader,
    crc_is_valid,
    read_batch_header,
)
from odradek.protocol.records.message_set import MESSAGE_ATTRIBUTES, message_crc_is_valid, read_message_header


def follower_batches(
    records: memoryview | bytearray, log_end_offset: int, last_epoch: int
) -> tuple[memoryview, list[tuple[int, BatchHeader]]]:
    """The whole batches of a Fetch response, and the position and header of each; a cut-off last one is ignored.

    Ends before a batch of a later epoch than `last_epoch`, which the sender did not lead when it answered: its log may
    have changed while the response was sent. A message of magic 0 or 1 has no epoch, and the offset of its last record
    alone: in the header that stands for it, it begins where the batch before it ends.

    Raises `KafkaError`: CORRUPT_MESSAGE for a wrong checksum or bytes that are no batch, OFFSET_OUT_OF_RANGE for
    offsets that do not ascend from `log_end_offset` on. Gaps are allowed: compaction and failed appends leave them.
    """
    data = memoryview(records)
    headers = []
    next_offset, end = log_end_offset, 0
    try:
        for position in _complete_batches(data):
            if data[position + MAGIC_POSITION] < MAGIC:
                header = _header_of_message(data, position, next_offset)
            else:
                header = read_batch_header(data, position)
                if not crc_is_valid(data, position, header):
                    raise _wrong_checksum(header.base_offset)
            if header.partition_leader_epoch > last_epoch:
                break
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"a batch at {header.base_offset} where {next_offset} comes next"
                )
            headers.append((position, header))
            next_offset, end = header.next_offset, position + header.size
    except RemoteProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return data[:end], headers


def _complete_batches(data: memoryview) -> Iterator[int]:
    """Yield the positions of the batches that are complete, if they have the length that they claim."""
    position, end = 0, len(data)
    while end - position > MAGIC_POSITION:
        at = position + LENGTH_POSITION
        size = LOG_OVERHEAD + int.from_bytes(data[at : at + 4], "big", signed=True)
        if position + size > end:
            return
        yield position  # its reader refuses a length that is too small
        position += size


def _header_of_message(data: memoryview, position: int, next_offset: int) -> BatchHeader:
    message = read_message_header(data, position)
    if not message_crc_is_valid(data, position, message):
        raise _wrong_checksum(message.offset)
    return BatchHeader(
        base_offset=next_offset,
        batch_length=message.message_size,
        partition_leader_epoch=-1,
        magic=message.magic,
        crc=message.crc,
        attributes=message.attributes & MESSAGE_ATTRIBUTES,
        last_offset_delta=message.offset - next_offset,
        base_timestamp=message.timestamp,
        max_timestamp=message.timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
    )


def _wrong_checksum(offset: int) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the checksum of the batch at {offset} is wrong")

"""The checks of batches that a follower fetched from its leader."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.records.batch_header import BatchHeader, batch_headers, crc_is_valid


def follower_batches(
    records: memoryview | bytearray, log_end_offset: int, last_epoch: int
) -> tuple[memoryview, list[tuple[int, BatchHeader]]]:
    """The whole batches of a Fetch response, and the position and header of each; a cut-off last one is ignored.

    Ends before a batch of a later epoch than `last_epoch`, which the sender did not lead when it answered: its log may
    have changed while the response was sent.

    Raises `KafkaError`: CORRUPT_MESSAGE for a wrong checksum or bytes that are no batch, OFFSET_OUT_OF_RANGE for
    offsets that do not ascend from `log_end_offset` on. Gaps are allowed: compaction and failed appends leave them.
    """
    headers = []
    next_offset, end = log_end_offset, 0
    try:
        for position, header in batch_headers(records):
            if header.partition_leader_epoch > last_epoch:
                break
            if not crc_is_valid(records, position, header):
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"the checksum of the batch at {header.base_offset} is wrong"
                )
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"a batch at {header.base_offset} where {next_offset} comes next"
                )
            headers.append((position, header))
            next_offset, end = header.next_offset, position + header.size
    except RemoteProtocolError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return memoryview(records)[:end], headers

"""The result of an append: offsets, timestamps, sizes."""

from __future__ import annotations

from odradek.broker.storage.producers.producer_state import AppendedBatch


class AppendInfo:
    """The result of an append. `last_offset` is inclusive; `log_append_time` is -1 where producers set timestamps.

    A `duplicate` is a batch that an idempotent producer has sent before: nothing was appended, and the offsets (and, as
    in Kafka, the time) are those of the first append. `size_bytes` is what the client sent, `records_converted` the
    number of records that were compressed again.
    """

    __slots__ = (
        "base_offset",
        "duplicate",
        "last_offset",
        "log_append_time",
        "log_start_offset",
        "records_converted",
        "records_count",
        "size_bytes",
    )

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time: int,
        log_start_offset: int,
        records_count: int,
        size_bytes: int,
        duplicate: bool = False,
        records_converted: int = 0,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.records_count = records_count
        self.size_bytes = size_bytes
        self.duplicate = duplicate
        self.records_converted = records_converted


def duplicate_of(first: AppendedBatch, log_start_offset: int, size_bytes: int, records_converted: int) -> AppendInfo:
    """The result for a duplicate; `first` is the batch of the first append."""
    records_count = first.last_offset - first.first_offset + 1
    return AppendInfo(
        first.first_offset,
        first.last_offset,
        first.timestamp,
        log_start_offset,
        records_count,
        size_bytes,
        duplicate=True,
        records_converted=records_converted,
    )

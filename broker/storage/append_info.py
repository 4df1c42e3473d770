"""What an append tells its caller."""

from __future__ import annotations

import msgspec


class AppendInfo(msgspec.Struct, frozen=True, gc=False):
    """Where a batch went. `last_offset` is inclusive; `log_append_time` is -1 where producers set the timestamps.

    A `duplicate` is a batch that an idempotent producer sent again: nothing was appended, and the offsets (and, as in
    Kafka, the time) are those of the first time. `size_bytes` is what the client sent, `records_converted` the number
    of records that were compressed anew.
    """

    base_offset: int
    last_offset: int
    log_append_time: int
    log_start_offset: int
    records_count: int
    size_bytes: int
    duplicate: bool = False
    records_converted: int = 0

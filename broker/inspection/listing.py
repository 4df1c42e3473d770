"""`inspect DIR topic-partition`: its segments, and in each the batches and the index entries, in order.

Items are printed while they are read, so a log of any size takes the memory of one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import msgspec

from odradek.broker.inspection.text import size_text, time_text
from odradek.broker.storage import StoredPartition
from odradek.broker.storage.batch_scan import StoredBatch
from odradek.broker.storage.segment import Segment
from odradek.protocol.records.batch_header import BatchHeader, crc_is_valid, read_batch_header
from odradek.protocol.uuids import uuid_to_text

Item = tuple[str, dict[str, Any]]
"""The kind ("partition", "segment", "batch", …) and its fields."""


def items(partition: StoredPartition, segment_offset: int | None) -> Iterator[Item]:
    """All items, or only those of the segment that holds `segment_offset`.

    Raises as `StoredPartition`, at the place where the log cannot be read further.
    """
    yield (
        "partition",
        {
            "name": f"{partition.topic}-{partition.partition}",
            "topic_id": uuid_to_text(partition.topic_id),
            "log_start_offset": partition.log_start_offset,
            "log_end_offset": partition.log_end_offset,
            "last_stable_offset": partition.last_stable_offset,
            "size_bytes": partition.size_bytes,
        },
    )
    for epoch, start_offset in partition.leader_epochs:
        yield "leader epoch", {"epoch": epoch, "start_offset": start_offset}
    for producer in partition.producers:
        yield (
            "producer",
            {
                "producer_id": producer.producer_id,
                "epoch": producer.epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.last_offset,
                "last_timestamp": producer.last_timestamp,
                "transaction_first_offset": producer.transaction_first_offset,
            },
        )
    for segment in _chosen(partition.segments, segment_offset):
        yield from _segment_items(segment)


def _chosen(segments: list[Segment], offset: int | None) -> list[Segment]:
    if offset is None:
        return segments
    return [segment for segment in segments if segment.base_offset <= offset][-1:]


def _segment_items(segment: Segment) -> Iterator[Item]:
    offsets, times = segment.indexes.offsets, segment.indexes.times
    yield (
        "segment",
        {
            "base_offset": segment.base_offset,
            "size_bytes": segment.size,
            "max_timestamp": segment.largest_timestamp().timestamp,
            "index_entries": offsets.count,
            "timeindex_entries": times.count,
        },
    )
    for batch in segment.log.batches():
        yield "batch", _batch(batch, segment.log.read(batch))
    for slot in range(offsets.count):
        offset, position = offsets.entry(slot)
        yield "index", {"offset": offset, "position": position}
    for slot in range(times.count):
        timestamp, offset = times.entry(slot)
        yield "timeindex", {"timestamp": timestamp, "offset": offset}
    for aborted in segment.transaction_index.entries():
        yield "txnindex", aborted._asdict()


def _batch(batch: StoredBatch, data: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "position": batch.position,
        "size_bytes": batch.size,
        "magic": batch.magic,
        "max_timestamp": batch.max_timestamp,
    }
    if batch.magic == 2:
        row |= _header(read_batch_header(data), data)
    return row


def _header(header: BatchHeader, data: bytes) -> dict[str, Any]:
    row: dict[str, Any] = {
        "leader_epoch": header.partition_leader_epoch,
        "records": header.records_count,
        "codec": header.codec.name.lower(),
        "timestamp_type": header.timestamp_type.name.lower(),
        "crc_is_valid": crc_is_valid(data, 0, header),
    }
    if header.has_producer_id:
        row |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "base_sequence": header.base_sequence,
        }
    if header.is_transactional:
        row["transactional"] = True
    if header.is_control:
        row["control"] = True
    if header.delete_horizon_ms is not None:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    return row


def print_items(out: TextIO, found: Iterator[Item], *, as_json: bool) -> None:
    """Print each item on a line of its own: as an object with one field, or as text, indented under its segment."""
    for kind, row in found:
        if as_json:
            out.write(msgspec.json.encode({kind.replace(" ", "_"): row}).decode() + "\n")
        else:
            indent = "" if kind in ("partition", "segment") else "  "
            out.write(f"{indent}{kind}  " + "  ".join(_field_text(name, value) for name, value in row.items()) + "\n")


def _field_text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return name.replace("_", " ") if value else f"{name.replace('_', ' ')}: no"
    if name.endswith(("timestamp", "_ms")) and isinstance(value, int):
        return f"{name.removesuffix('_ms').replace('_', ' ')} {time_text(value)}"
    if name == "size_bytes" and isinstance(value, int):
        return f"size {size_text(value)}"
    return f"{name.replace('_', ' ')} {value}"

"""The open transactions of a log directory, from two sources that are joined by the producer's id.

| source | what it has |
|---|---|
| the partitions' logs | the offset from which a transaction holds consumers of committed records back |
| `__transaction_state` | the transactional id, the state, the start, the partitions |

Without the second one, or with one of another broker's directory, id and state are unknown. A transaction that is only
in `__transaction_state` has written nothing here, or its markers are written and its last record is not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TextIO

import msgspec

from odradek.broker.inspection.text import print_table, time_text
from odradek.broker.storage import StoredPartition
from odradek.protocol.codec import decode
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import NO_TIMESTAMP
from odradek.protocol.records.record_iterator import Record
from odradek.protocol.schema import spec
from odradek.protocol.stored_records.transaction_log import TransactionLogKey, TransactionLogValue

TRANSACTION_STATE: Final = "__transaction_state"
"""The topic with the state of transactions."""

_TYPE: Final = struct.Struct(">h")
_STATES: Final = {1: "Ongoing", 2: "PrepareCommit", 3: "PrepareAbort"}
_TITLES: Final = ("transactional id", "producer id", "epoch", "state", "since", "partition", "first offset")


class OpenTransaction(msgspec.Struct, kw_only=True):
    """One transaction; `transactional_id` and `state` are None if `__transaction_state` does not have it.

    `start_timestamp` is in milliseconds since 1970, -1 if unknown. `first_offsets` has the first offset in each
    partition with its records, `partitions` all of the transaction's partitions that are known.
    """

    producer_id: int
    producer_epoch: int
    transactional_id: str | None = None
    state: str | None = None
    start_timestamp: int = NO_TIMESTAMP
    partitions: list[str] = []
    first_offsets: dict[str, int] = {}


def read_open_transactions(topics: Mapping[str, Sequence[StoredPartition]]) -> tuple[list[OpenTransaction], list[str]]:
    """Return the open transactions, those of the lowest producer id first, and a finding for each unreadable record."""
    states, findings = _read_states(topics.get(TRANSACTION_STATE, ()))
    found = {each.producer_id: each for each in states}
    for name, partitions in sorted(topics.items()):
        for partition in partitions:
            for producer in partition.producers:
                offset = producer.transaction_first_offset
                if offset < 0:
                    continue
                known = found.get(producer.producer_id)
                if known is None:
                    known = OpenTransaction(producer_id=producer.producer_id, producer_epoch=producer.epoch)
                    found[producer.producer_id] = known
                key = f"{name}-{partition.partition}"
                known.first_offsets[key] = offset
                if key not in known.partitions:
                    known.partitions.append(key)
    return sorted(found.values(), key=lambda each: each.producer_id), findings


def print_open_transactions(out: TextIO, transactions: Iterable[OpenTransaction]) -> None:
    """Print a row for each partition of each transaction."""
    rows = [
        (
            each.transactional_id or "-",
            each.producer_id,
            each.producer_epoch,
            each.state or "-",
            time_text(each.start_timestamp),
            partition,
            each.first_offsets.get(partition, "-"),
        )
        for each in transactions
        for partition in each.partitions or ["-"]
    ]
    print_table(out, _TITLES, rows)


def _read_states(partitions: Iterable[StoredPartition]) -> tuple[list[OpenTransaction], list[str]]:
    found: dict[str, OpenTransaction | None] = {}
    findings = []
    for partition in partitions:
        for record in partition.records():
            try:
                _take(found, record)
            except (RemoteProtocolError, struct.error) as error:
                place = f"{partition.topic}-{partition.partition}"
                findings.append(f"{place}: the transaction at offset {record.offset} cannot be read: {error}")
    return [each for each in found.values() if each is not None], findings


def _take(found: dict[str, OpenTransaction | None], record: Record) -> None:
    """Replace the state of a record's transactional id; None if no transaction is open."""
    if record.key is None or _TYPE.unpack_from(record.key)[0] != 0:
        return
    transactional_id = decode(TransactionLogKey, 0, record.key, _TYPE.size).transactional_id
    if record.value is None:
        found[transactional_id] = None
        return
    (version,) = _TYPE.unpack_from(record.value)
    known = spec(TransactionLogValue)
    if not known.first_version <= version <= known.last_version:
        raise RemoteProtocolError(f"version {version} is unknown")
    value = decode(TransactionLogValue, version, record.value, _TYPE.size)
    state = _STATES.get(value.transaction_status)
    found[transactional_id] = (
        None
        if state is None
        else OpenTransaction(
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            transactional_id=transactional_id,
            state=state,
            start_timestamp=value.transaction_start_timestamp_ms,
            partitions=[
                f"{topic.topic}-{index}"
                for topic in value.transaction_partitions or ()
                for index in topic.partition_ids
            ],
        )
    )

"""The batches of a log, added to the state of its producers: by a follower, after a restart or a truncation."""

from __future__ import annotations

from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.broker.storage.producers.producer_state import CompletedTransaction, ProducerState
from odradek.protocol.buffer import Buffer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import EndTxnMarker, parse_end_txn_marker, read_end_txn_marker
from odradek.protocol.records.record_iterator import iter_records


def read_marker(data: Buffer, header: BatchHeader) -> EndTxnMarker | None:
    """The marker in the control batch `data`; None if it is of another kind or compaction has emptied it."""
    marker = read_end_txn_marker(data)
    if marker is not None:
        return marker
    try:
        record = next(iter_records(data, 0, header), None)
        return None if record is None else parse_end_txn_marker(record)
    except RemoteProtocolError:
        return None


def replay_batch(state: ProducerState, header: BatchHeader, marker: EndTxnMarker | None) -> CompletedTransaction | None:
    """Add a batch from the log to `state`; return the transaction that it ended, which is still to be completed."""
    completed = None
    if header.has_producer_id:
        if not header.is_control:
            state.add_batch(header, header.base_offset)
        elif marker is not None:
            completed = state.add_marker(header, marker, header.base_offset)
    state.end_offset = header.next_offset
    return completed


def aborted_entry(state: ProducerState, completed: CompletedTransaction) -> AbortedTransaction:
    """The entry of the transaction index for `completed`, which `state` has not completed yet."""
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        state.last_stable_offset_after(completed),
    )

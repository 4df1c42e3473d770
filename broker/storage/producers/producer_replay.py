"""Learning a partition's producers from its log: what snapshots do not cover is read batch by batch.

Only headers are read, and the records of control batches. Nothing is refused: what is in the log was accepted once.
"""

from __future__ import annotations

from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.broker.storage.producers.producer_history import complete_batches
from odradek.broker.storage.producers.producer_snapshots import ProducerSnapshots
from odradek.broker.storage.producers.producer_state import CompletedTransaction, ProducerState
from odradek.broker.storage.segments import Segments
from odradek.protocol.code_generation.primitives import Buffer
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import EndTxnMarker, parse_end_txn_marker
from odradek.protocol.records.record_iterator import iter_records


def read_marker(data: Buffer, header: BatchHeader) -> EndTxnMarker | None:
    """The marker in the control batch `data`, or None if it is of another kind or was emptied by compaction."""
    try:
        record = next(iter_records(data, 0, header), None)
        return None if record is None else parse_end_txn_marker(record)
    except RemoteProtocolError:
        return None


def replay_batch(state: ProducerState, header: BatchHeader, marker: EndTxnMarker | None) -> CompletedTransaction | None:
    """Take a batch of the log into `state`; returns the transaction that it ended, still to be completed."""
    completed = None
    if header.has_producer_id:
        if not header.is_control:
            state.add_batch(header, header.base_offset)
        elif marker is not None:
            completed = state.add_marker(header, marker, header.base_offset)
    state.end_offset = header.next_offset
    return completed


def aborted_entry(state: ProducerState, completed: CompletedTransaction) -> AbortedTransaction:
    """What the transaction index says of `completed`, which `state` has not completed yet."""
    return AbortedTransaction(
        completed.producer_id,
        completed.first_offset,
        completed.last_offset,
        state.last_stable_offset_after(completed),
    )


def rebuild_producer_state(
    state: ProducerState,
    snapshots: ProducerSnapshots,
    segments: Segments,
    log_start_offset: int,
    end_offset: int,
    *,
    now_ms: int,
    expiration_ms: int,
    may_read_log: bool = True,
) -> None:
    """Make `state` what it is at `end_offset`, and write down snapshots so that the next time is quick.

    As Kafka's `UnifiedLog.rebuildProducerState`: snapshots are also taken at the bases of the last two segments, where
    the next truncation or recovery is likely to begin. Unless `may_read_log`, the log is read only where there is no
    snapshot, and each producer is known by its last batch.
    """
    snapshots.remove_outside(log_start_offset, end_offset)
    snapshots.load_latest(state, log_start_offset, now_ms, expiration_ms)
    if may_read_log:
        complete_batches(state, segments, log_start_offset)
    if state.end_offset < end_offset:
        last_bases = segments.base_offsets[-2:]
        for segment in segments.from_offset(state.end_offset):
            if segment.base_offset >= end_offset:
                break
            state.end_offset = max(segment.base_offset, state.end_offset, log_start_offset)
            if segment.base_offset in last_bases:
                snapshots.write(state)
            start = segment.locate(state.end_offset)
            if start is None:
                continue
            for batch, header in segment.log.headers(start[0]):
                if batch.base_offset >= end_offset:
                    break
                marker = read_marker(segment.log.read(batch), header) if header.is_control else None
                completed = replay_batch(state, header, marker)
                if completed is not None:
                    state.complete(completed)
    state.end_offset = end_offset
    snapshots.write(state)

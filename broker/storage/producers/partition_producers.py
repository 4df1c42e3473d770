"""The producers of one log, kept in step with it: checked before an append, noted after it, saved, and restored.

`ProducerState` knows the rules, `ProducerSnapshots` the files; this joins them with the log's segments, and keeps
`first_unstable_offset` (where the earliest transaction begins that is not settled) ready for every reader.

The appender calls everything but `replicated_up_to`, which may come from another thread meanwhile; `remove_expired` may
come from another thread while no append is under way.
"""

from __future__ import annotations

from threading import Lock

from odradek.broker.storage.append.batch_refusals import WritableBatch
from odradek.broker.storage.producers.producer_entry import AppendedBatch
from odradek.broker.storage.producers.producer_replay import (
    aborted_entry,
    read_marker,
    rebuild_producer_state,
    replay_batch,
)
from odradek.broker.storage.producers.producer_snapshots import ProducerSnapshots
from odradek.broker.storage.producers.producer_state import CompletedTransaction, ProducerState
from odradek.broker.storage.segment import Segment
from odradek.broker.storage.segments import Segments
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import EndTxnMarker


class PartitionProducers:
    """See the module. `state` is what is known now."""

    def __init__(self, state: ProducerState, snapshots: ProducerSnapshots) -> None:
        self.state = state
        self.first_unstable_offset = state.first_unstable_offset
        self._snapshots = snapshots
        self._transactions_lock = Lock()  # the appender opens and ends them, the high watermark settles them

    # -------------------------------------------------------------------------------------------------------- appending

    def judge(self, data: WritableBatch, header: BatchHeader, from_client: bool) -> AppendedBatch | EndTxnMarker | None:
        """What a leader is to do with a batch that has a producer id, before it is appended.

        The batch that it repeats: append nothing. The marker in it, or None for data: append it, and then `note` that.
        Raises `KafkaError` as `ProducerState.check` and `check_marker` do, INVALID_RECORD for any other control batch.
        """
        if not header.is_control:
            return self.state.check(header, from_client)
        marker = read_marker(data, header)
        if marker is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "a control batch with a producer id must end a transaction")
        self.state.check_marker(header, marker)
        return marker

    def note(self, header: BatchHeader, marker: EndTxnMarker | None, base_offset: int, segment: Segment) -> None:
        """A batch with a producer id was appended to `segment` at `base_offset`."""
        if not header.is_transactional:
            self.state.add_batch(header, base_offset)
            return
        with self._transactions_lock:
            if marker is None:
                self.state.add_batch(header, base_offset)
            else:
                self._complete(self.state.add_marker(header, marker, base_offset), segment)
            self.first_unstable_offset = self.state.first_unstable_offset

    def follow(self, header: BatchHeader, data: memoryview, segment: Segment) -> None:
        """A batch of the leader's was appended to `segment` as it is."""
        marker = read_marker(data, header) if header.is_control else None
        with self._transactions_lock:
            self._complete(replay_batch(self.state, header, marker), segment)
            self.first_unstable_offset = self.state.first_unstable_offset

    def _complete(self, completed: CompletedTransaction | None, segment: Segment) -> None:
        if completed is not None:
            if completed.is_aborted:
                segment.transaction_index.append(aborted_entry(self.state, completed))
            self.state.complete(completed)

    # --------------------------------------------------------------------------------------------------------- settling

    def replicated_up_to(self, offset: int) -> None:
        """All below `offset` is replicated, or deleted: transactions whose markers are below it are settled."""
        if self.first_unstable_offset is not None:
            with self._transactions_lock:
                self.state.replicated_up_to(offset)
                self.first_unstable_offset = self.state.first_unstable_offset

    def remove_expired(self, now_ms: int, expiration_ms: int, producer_ids: list[int] | None = None) -> int:
        """Forget producers, of these or of all, that were idle for too long; return how many."""
        return self.state.remove_expired(now_ms, expiration_ms, producer_ids)

    # -------------------------------------------------------------------------------------------------------- snapshots

    def snapshot_at(self, offset: int) -> None:
        """Write down the state, which is that at `offset`; not yet synced."""
        self.state.end_offset = offset
        self._snapshots.write(self.state)

    def flush(self) -> None:
        """Sync the snapshots written since the last time."""
        self._snapshots.flush()

    def rebuild(
        self, segments: Segments, log_start_offset: int, end_offset: int, *, now_ms: int, expiration_ms: int
    ) -> None:
        """Learn the state at `end_offset` again, from snapshots and the log: it was cut, or damaged."""
        with self._transactions_lock:
            rebuild_producer_state(
                self.state,
                self._snapshots,
                segments,
                log_start_offset,
                end_offset,
                now_ms=now_ms,
                expiration_ms=expiration_ms,
            )
            self.first_unstable_offset = self.state.first_unstable_offset

    def forget_snapshots_of(self, removed: list[Segment]) -> list[str]:
        """Take out the snapshots of segments that are not of the log any more; returns the files to remove."""
        paths = [self._snapshots.mark_deleted(segment.base_offset) for segment in removed]
        return [path for path in paths if path is not None]

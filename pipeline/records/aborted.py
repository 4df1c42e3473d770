"""Which batches `read_committed` leaves out: those of transactions that were aborted (KIP-98).

The broker, or the transaction index, names aborted transactions by producer and first offset. A producer's batches are
left out from there to its abort marker; its next transaction may be another matter. Source: Kafka `CompletedFetch`.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import ControlRecordType, control_record_type
from odradek.protocol.records.record_iterator import iter_records


class AbortedFilter:
    """To be shown all batches of a range in order; `aborted`: producer ids and first offsets of the transactions."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._to_come = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
        self._producers: set[int] = set()

    def leaves_out(self, raw: Buffer, position: int, header: BatchHeader) -> bool:
        """Whether the batch is to be left out; a marker of the end of a transaction always is, and has its effect.

        Raises RemoteProtocolError for a control batch that is malformed.
        """
        while self._to_come and self._to_come[-1][1] <= header.last_offset:
            self._producers.add(self._to_come.pop()[0])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._producers
        if header.producer_id in self._producers:
            marker = next(iter_records(raw, position, header), None)
            if marker is not None and control_record_type(marker.key) == ControlRecordType.ABORT:
                self._producers.discard(header.producer_id)
        return True

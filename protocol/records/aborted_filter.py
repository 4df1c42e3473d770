"""The batches that `read_committed` skips: those of aborted transactions (KIP-98), and control batches.

The broker's response, or the transaction index, names an aborted transaction by its producer and first offset. From
that offset to the producer's next abort marker its transactional batches are skipped. Source: Kafka `CompletedFetch`.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import ControlRecordType, control_record_type
from odradek.protocol.records.record_iterator import iter_records


class AbortedFilter:
    """Decides batch by batch, in the order of their offsets; `aborted` are pairs of producer id and first offset."""

    def __init__(self, aborted: Iterable[tuple[int, int]]) -> None:
        self._to_come = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
        self._producers: set[int] = set()  # those in an aborted transaction at this offset

    def skips(self, buffer: Buffer, position: int, header: BatchHeader) -> bool:
        """Return whether the batch at `position` is skipped. Raises RemoteProtocolError for a malformed marker."""
        while self._to_come and self._to_come[-1][1] <= header.last_offset:
            self._producers.add(self._to_come.pop()[0])
        if not header.is_control:
            return header.is_transactional and header.producer_id in self._producers
        if header.producer_id in self._producers:
            marker = next(iter_records(buffer, position, header), None)
            if marker is not None and control_record_type(marker.key) == ControlRecordType.ABORT:
                self._producers.discard(header.producer_id)
        return True

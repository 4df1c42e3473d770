"""The check of a partition's transactions against its transaction indexes.

`odradek.broker.storage.index.transaction_index` draws an index. A `read_committed` consumer learns only from it which
records were aborted. So each entry must have its abort marker in the log, and each abort marker of a transaction with
records in the log must have its entry.
"""

from __future__ import annotations

from odradek.broker.inspection.problem import Problem, Report
from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.records.batch_header import read_batch_header
from odradek.protocol.records.control_records import ControlRecordType, control_record_type
from odradek.protocol.records.record_iterator import iter_records


class TransactionCheck:
    """One check over the segments of a partition, in order; `check_batch` gets their transactional and control batches.

    `ended` has each producer with a marker, and whether its first marker is an abort that the index lacks.
    """

    def __init__(self, report: Report) -> None:
        self.ended: dict[int, bool] = {}
        self._report = report
        self._open: dict[int, int] = {}  # producer id → offset of the first batch of its transaction
        self._entries: dict[tuple[int, int], AbortedTransaction] = {}  # by producer id and offset of the marker
        self._index_path = ""
        self._log_path = ""

    @property
    def open_producers(self) -> list[int]:
        """The producers in a transaction now."""
        return sorted(self._open)

    def start_segment(self, log_path: str, index_path: str, entries: list[AbortedTransaction]) -> None:
        self._log_path = log_path
        self._index_path = index_path
        self._entries = {(entry.producer_id, entry.last_offset): entry for entry in entries}

    def check_batch(self, data: memoryview, position: int) -> None:
        """Check a transactional batch or control batch; its checksum is valid."""
        header = read_batch_header(data)
        if not header.is_control:
            self._open.setdefault(header.producer_id, header.base_offset)
            return
        try:
            kind = control_record_type(next(iter(iter_records(data, 0, header))).key)
        except (RemoteProtocolError, StopIteration) as error:
            # Compaction keeps the batch without the marker if it is the last one of its producer.
            if header.records_count:
                self._report(Problem(self._log_path, f"no control record: {error}", position, header.base_offset))
            return
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            return
        begun = self._open.pop(header.producer_id, None)
        entry = self._entries.pop((header.producer_id, header.base_offset), None)
        self.ended.setdefault(header.producer_id, kind == ControlRecordType.ABORT and entry is None)
        if kind == ControlRecordType.ABORT and begun is not None and entry is None:
            self._report(
                Problem(
                    self._index_path,
                    f"lacks the transaction of producer {header.producer_id} that was aborted from {begun} on",
                    offset=header.base_offset,
                )
            )
        elif kind == ControlRecordType.COMMIT and entry is not None:
            self._report(Problem(self._index_path, f"lists {entry}, which was committed", offset=header.base_offset))

    def finish_segment(self) -> None:
        for entry in self._entries.values():
            self._report(Problem(self._index_path, f"{entry} has no marker in the log", offset=entry.last_offset))

"""The batches of aborted transactions in a log, and the markers that can be removed.

`is_discardable` is called for the batches of a log in order. The transaction index lists the aborted transactions.

| batch                                           | discard                                                        |
|-------------------------------------------------|----------------------------------------------------------------|
| data of an aborted transaction                  | its records, at once                                           |
| abort marker, batches of the transaction seen   | no; the transaction stays in the index                         |
| abort marker, none seen                         | after the retention of tombstones (KIP-534)                    |
| commit marker, batches of the transaction seen  | no                                                             |
| commit marker, none seen                        | after the retention of tombstones                              |
| control batch that was emptied                  | yes                                                            |
| anything else                                   | no                                                             |

Kafka's `CleanedTransactionMetadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from odradek.broker.storage.index.transaction_index import AbortedTransaction
from odradek.broker.storage.producers.batch_replay import read_marker
from odradek.protocol.buffer import Buffer
from odradek.protocol.records.batch_header import BatchHeader
from odradek.protocol.records.control_records import ControlRecordType


class CleanedTransactions:
    """One pass over a log. `aborted` are the transactions with batches or markers in the part that is read.

    `keep` is called with every aborted transaction whose marker and batches were both seen.
    """

    def __init__(
        self, aborted: Iterable[AbortedTransaction], keep: Callable[[AbortedTransaction], None] = lambda _: None
    ) -> None:
        self.keep = keep
        self._ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}  # begun and not ended, by producer id
        self._seen: set[int] = set()  # those of them that have batches
        self._committed: set[int] = set()  # producers with batches that are not of an aborted transaction

    def is_discardable(self, data: Buffer, header: BatchHeader) -> bool:
        """Whether to discard the next batch, now or after the delete horizon; see the table."""
        if not header.is_transactional and not header.is_control:
            return False
        while self._ahead and self._ahead[-1].first_offset <= header.last_offset:
            transaction = self._ahead.pop()
            self._aborted.setdefault(transaction.producer_id, transaction)
        return self._is_discardable_marker(data, header) if header.is_control else self._is_aborted(header)

    def _is_aborted(self, header: BatchHeader) -> bool:
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def _is_discardable_marker(self, data: Buffer, header: BatchHeader) -> bool:
        if not header.records_count:
            return True
        marker = read_marker(data, header)
        if marker is None:
            return False
        producer_id = header.producer_id
        if marker.type == ControlRecordType.COMMIT:
            seen = producer_id in self._committed
            self._committed.discard(producer_id)
            return not seen
        transaction = self._aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        self.keep(transaction)
        return False

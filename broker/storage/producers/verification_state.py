"""The verifications of transactions: proof that the coordinator has a partition in a transaction (KIP-890).

```
first batch of a transaction ─► begin ─► the coordinator verifies or adds the partition ─► append: check ─► end
                                  │                  marker ─► end                                 │
                                  └── later batches: IN_TRANSACTION ──────────────────────────────►┘ if still open
```
While the coordinator is asked, a marker may end the transaction. A batch that was appended then would open a
transaction without an end. So a verification is valid until a marker or the first batch of the transaction: `check`
rejects a batch with an ended one as INVALID_TXN_STATE, and the client's retry begins a new one.

A verification may fail with an error that the client retries. Until one succeeds, no batch with a higher sequence than
the lowest that was seen is appended (OUT_OF_ORDER_SEQUENCE_NUMBER): the lower one would be out of order afterwards.

The event loop begins verifications, the appender checks and ends them. As Kafka's `VerificationStateEntry`.
"""

from __future__ import annotations

from typing import Final

from odradek.protocol.errors import ErrorCode, KafkaError


class Verification:
    """The verification of one producer's transaction in one partition; valid while `Verifications` has it."""

    __slots__ = ("began_ms", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, lowest_sequence: int, began_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = lowest_sequence
        self.began_ms = began_ms


IN_TRANSACTION: Final = Verification(-1, -1, -1)
"""The verification of a batch that belongs to an open transaction; it is valid only while the transaction is open."""


class Verifications:
    """The verifications of one partition that neither a batch nor a marker has ended, by producer id."""

    def __init__(self) -> None:
        self._pending: dict[int, Verification] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def begin(self, producer_id: int, epoch: int, first_sequence: int, now_ms: int) -> Verification:
        """Begin to verify a batch, or continue: several batches of a producer share one verification."""
        pending = self._pending.get(producer_id)
        if pending is None:
            pending = self._pending[producer_id] = Verification(epoch, first_sequence, now_ms)
        elif epoch > pending.epoch or (epoch == pending.epoch and first_sequence < pending.lowest_sequence):
            pending.epoch = epoch
            pending.lowest_sequence = first_sequence
        return pending

    def check(self, producer_id: int, first_sequence: int, verification: Verification) -> None:
        """Check a batch that opens a transaction. Raises KafkaError as the module says."""
        if self._pending.get(producer_id) is not verification:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, f"the transaction of producer {producer_id} ended before its batch came"
            )
        if first_sequence > verification.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {producer_id} sent sequence {first_sequence}, but {verification.lowest_sequence} was not "
                "appended yet",
            )

    def end(self, producer_id: int) -> None:
        """End a producer's verification, if it has one."""
        self._pending.pop(producer_id, None)

    def clear(self) -> None:
        """End all verifications."""
        self._pending.clear()

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove verifications that began long ago and were not ended."""
        for producer_id, pending in list(self._pending.items()):
            if now_ms - pending.began_ms >= expiration_ms:
                self._pending.pop(producer_id, None)

"""The transactions of a run, what readers of committed records saw of them, and the contradictions in it.

| event | contradiction |
|---|---|
| a record is read | nobody wrote it; its transaction is open or was aborted; it was acknowledged, or read, elsewhere |
| a part of the log is read again | a record is there that was not before, or has gone |
| an acknowledged abort | a record of the transaction was read |
| the last reading of everything | a transaction is there in part; an acknowledged one is missing |
| the last offset of the producer's group | it is not that of the last transaction that was read |

A transaction is `OPEN` until its producer asks to commit it, then `UNKNOWN` until that is answered. Values are unique
in a run. Partitions are (topic id, index).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

Partition = tuple[bytes, int]


class Outcome(Enum):
    OPEN = "open"
    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


class SimulatedTransaction:
    """One transaction of a producer. `offset` is what it commits for the producer's group, -1 for none."""

    def __init__(self, owner: str, number: int, partitions: Mapping[bytes, Partition], offset: int) -> None:
        self.name = f"{owner}-{number}"
        self.owner = owner
        self.partitions = partitions  # by value
        self.offset = offset
        self.outcome = Outcome.OPEN
        self.places: dict[bytes, int] = {}  # the offset of each value that was acknowledged or read
        self.read: set[bytes] = set()

    def __repr__(self) -> str:
        return f"{self.outcome.value} transaction {self.name}"


class _Stable:
    """What was read of one partition, up to `end` (exclusive)."""

    def __init__(self) -> None:
        self.values: dict[int, bytes] = {}
        self.end = 0


class TransactionHistory:
    """The transactions of one run; `fail` is called with each contradiction."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self.transactions: list[SimulatedTransaction] = []
        self.committed = self.aborted = 0  # whose ends were acknowledged
        self._by_value: dict[bytes, SimulatedTransaction] = {}
        self._stable: dict[Partition, _Stable] = {}
        self._fail = fail

    def begin(self, owner: str, partitions: Mapping[bytes, Partition], offset: int) -> SimulatedTransaction:
        """Begin a transaction that will write these values."""
        transaction = SimulatedTransaction(owner, len(self.transactions), partitions, offset)
        self.transactions.append(transaction)
        self._by_value.update(dict.fromkeys(partitions, transaction))
        return transaction

    def acknowledge(self, values: Sequence[bytes], base_offset: int) -> None:
        """Record that values of one transaction are at these offsets."""
        for offset, value in enumerate(values, base_offset):
            self._place(self._by_value[value], value, offset)

    def end(self, transaction: SimulatedTransaction, outcome: Outcome) -> None:
        """Record an acknowledged end."""
        transaction.outcome = outcome
        if outcome is Outcome.COMMITTED:
            self.committed += 1
            return
        self.aborted += 1
        if transaction.read:
            self._fail(f"{sorted(transaction.read)} of the {transaction} were read")

    def read(self, partition: Partition, start: int, next_offset: int, records: Sequence[tuple[int, bytes]]) -> None:
        """Record that these are all committed records from `start` to `next_offset` (exclusive)."""
        stable = self._stable.setdefault(partition, _Stable())
        name = f"{partition[0].hex()[:6]}-{partition[1]}"
        for offset, value in records:
            transaction = self._by_value.get(value)
            if transaction is None or transaction.partitions[value] != partition:
                self._fail(f"{name}: {value!r} read at {offset}, which nobody wrote")
                continue
            if transaction.outcome in (Outcome.OPEN, Outcome.ABORTED):
                self._fail(f"{name}: {value!r} of the {transaction} read at {offset}")
            self._place(transaction, value, offset)
            transaction.read.add(value)
            if offset < stable.end and offset not in stable.values:
                self._fail(f"{name}: {value!r} of the {transaction} at {offset} was not there before")
            stable.values[offset] = value
        found = dict(records)
        for offset in range(start, min(next_offset, stable.end)):
            if offset in stable.values and offset not in found:
                self._fail(f"{name}: {stable.values[offset]!r} at {offset} has gone")
        stable.end = max(stable.end, next_offset)

    def _place(self, transaction: SimulatedTransaction, value: bytes, offset: int) -> None:
        known = transaction.places.setdefault(value, offset)
        if known != offset:
            self._fail(f"{value!r} of the {transaction} is at {offset} and at {known}")

    def check_whole(self) -> None:
        """Check the transactions when everything has been read up to the ends of the logs."""
        for each in self.transactions:
            missing = each.partitions.keys() - each.read
            if missing and (each.read or each.outcome is Outcome.COMMITTED):
                self._fail(f"{sorted(missing)} of the {each} are missing")

    def expected_offset(self, owner: str) -> int:
        """Return what the owner's group has committed, by the transactions that were read; -1 without any."""
        return max((each.offset for each in self.transactions if each.owner == owner and each.read), default=-1)

    def found_offset(self, owner: str, offset: int) -> None:
        """Check the group's offset after `check_whole`."""
        expected = self.expected_offset(owner)
        if offset != expected:
            self._fail(f"the group of {owner} is at {offset}, its last transaction committed {expected}")

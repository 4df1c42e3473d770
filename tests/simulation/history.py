"""The history of a run: the actions and observations of its clients, and the contradictions in it.

| event | contradiction |
|---|---|
| an acknowledgement | another value is acknowledged, or was read, at that offset; the value is acknowledged elsewhere |
| a read | another value was acknowledged or read there; nobody wrote the value; records are missing in between |
| a group's offset | below the last acknowledged commit, and of no attempt whose end is unknown |
| a new topic | it has the id of a deleted one |

A partition is (topic id, index). Values are unique in a run, so that each is found at one place.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation.owned_group import OwnedGroup
from tests.simulation.transaction_history import TransactionHistory

Partition = tuple[bytes, int]


class PartitionHistory:
    """The values of one partition by offset."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.read: dict[int, bytes] = {}
        self.written: set[bytes] = set()  # also those whose outcome is unknown
        self.start = 0  # records below it may have been deleted
        self.next_read = 0  # above the highest offset that was read

    @property
    def acknowledged_end(self) -> int:
        return max(self.acknowledged, default=-1) + 1


class GroupHistory:
    """The commits of one group by one client, in order."""

    def __init__(self) -> None:
        self.acknowledged = -1
        self.unknown: set[int] = set()  # those of which an attempt may arrive late


class History:
    """The history of one run; `fail` is called with each contradiction."""

    def __init__(self, fail: Callable[[str], None]) -> None:
        self.partitions: dict[Partition, PartitionHistory] = {}
        self.groups: dict[str, GroupHistory] = {}
        self.owned_groups: dict[str, OwnedGroup] = {}
        self.transactions = TransactionHistory(fail)
        self.names: dict[bytes, str] = {}
        self.deleted: set[bytes] = set()  # ids of topics whose deletion was acknowledged
        self._fail = fail

    def created(self, topic_id: bytes, name: str, partitions: int) -> None:
        if topic_id in self.deleted:
            self._fail(f"the deleted topic {name} has its id again")
        self.names[topic_id] = name
        for index in range(partitions):
            self.partitions.setdefault((topic_id, index), PartitionHistory())

    def writing(self, partition: Partition, values: list[bytes]) -> None:
        self.partitions[partition].written.update(values)

    def acknowledge(self, partition: Partition, base_offset: int, values: list[bytes]) -> None:
        history = self.partitions[partition]
        for offset, value in enumerate(values, base_offset):
            before = history.acknowledged.setdefault(offset, value)
            if before != value:
                self._fail(f"{self._name(partition)}: {value!r} acknowledged at {offset}, where {before!r} was")
            read = history.read.get(offset, value)
            if read != value:
                self._fail(f"{self._name(partition)}: {value!r} acknowledged at {offset}, where {read!r} was read")

    def read(self, partition: Partition, from_offset: int, records: list[tuple[int, bytes]]) -> int:
        """Record what one fetch at `from_offset` returned, in order; return the offset of the next fetch."""
        history = self.partitions[partition]
        expected = from_offset
        for offset, value in records:
            if offset < from_offset:
                continue
            if offset != expected:
                self._fail(f"{self._name(partition)}: nothing at {expected} to {offset - 1}")
            expected = offset + 1
            if value not in history.written:
                self._fail(f"{self._name(partition)}: {value!r} read at {offset}, which nobody wrote")
            for what, known in (("acknowledged", history.acknowledged), ("read", history.read)):
                before = known.get(offset, value)
                if before != value:
                    self._fail(f"{self._name(partition)}: {value!r} read at {offset}, where {before!r} was {what}")
            history.read[offset] = value
        history.next_read = max(history.next_read, expected)
        return expected

    def out_of_range(self, partition: Partition, offset: int) -> None:
        """Record that the present leader has no such offset, although it was read up to there, or acknowledged."""
        self._fail(f"{self._name(partition)}: the leader does not have {offset}, which was read or acknowledged")

    def found_group_offset(self, group: str, least: int, offset: int) -> None:
        """Record the answer to a request that was sent when `least` was the last acknowledged commit."""
        history = self.groups[group]
        if offset < least and offset not in history.unknown:
            self._fail(f"group {group} is at {offset}, but {least} was acknowledged")

    def _name(self, partition: Partition) -> str:
        return f"{self.names.get(partition[0], '?')}-{partition[1]}"

"""What one partition of `__consumer_offsets` says: its groups of all types and their committed offsets.

| record types | of |
|---|---|
| 0, 1 | committed offsets; a group that nobody has joined comes into being by them |
| 2 | groups of the classic protocol |
| 3 to 8, 16 | groups of the consumer protocol |
| others | share and streams groups, which there are none of here: passed over |

The state is what the records in the log make of it, one after the other, whether they are loaded or were just written.
While it is loaded it belongs to a thread, afterwards to the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from odradek.broker.coordinator.classic_group import stored_group
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, Group
from odradek.broker.coordinator.offsets import committed_offsets as offsets
from odradek.broker.coordinator.offsets.committed_offsets import NO_PRODUCER, CommittedOffsets
from odradek.broker.coordinator.records import CoordinatorRecord

GroupFactories = Mapping[str, Callable[[str, int], Group]]
"""What makes a group, from its id and the time, by type."""

_CONSUMER_GROUP_RECORD = 3
_OWNERS = {stored_group.RECORD_TYPE: CLASSIC, **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), CONSUMER)}
_ENDS_GROUP = {stored_group.RECORD_TYPE, _CONSUMER_GROUP_RECORD}


class PartitionState:
    """The groups and their offsets."""

    def __init__(self, factories: GroupFactories) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self._factories = factories

    def new_group(self, group_type: str, group_id: str, now_ms: int) -> Group | None:
        """A group that is not in the state yet; None if that type is not supported."""
        make = self._factories.get(group_type)
        return None if make is None else make(group_id, now_ms)

    def replay(
        self,
        record: CoordinatorRecord,
        record_offset: int,
        now_ms: int,
        producer_id: int = NO_PRODUCER,
        candidate: Group | None = None,
    ) -> None:
        """Take a record into the state. If it begins a group, that is `candidate`, if it is of the right type."""
        if record.record_type in offsets.RECORD_TYPES:
            key: Any = record.key
            self.offsets.replay(record, record_offset, producer_id)
            if record.value is not None and key.group not in self.groups:
                self._begin(CLASSIC, key.group, now_ms, candidate)
            return
        owner = _OWNERS.get(record.record_type)
        if owner is not None:
            self._replay_group(record, owner, now_ms, candidate)

    def _replay_group(self, record: CoordinatorRecord, owner: str, now_ms: int, candidate: Group | None) -> None:
        key: Any = record.key
        group_id: str = key.group if owner == CLASSIC else key.group_id
        group = self.groups.get(group_id)
        if group is None or group.group_type != owner:
            # Takes back what an upgrade or a downgrade has put another type of group in the place of.
            group = None if record.value is None else self._begin(owner, group_id, now_ms, candidate)
        if group is None:
            return
        if record.value is None and record.record_type in _ENDS_GROUP:
            del self.groups[group_id]
        else:
            group.replay(record)

    def _begin(self, group_type: str, group_id: str, now_ms: int, candidate: Group | None) -> Group | None:
        if candidate is not None and candidate.group_type == group_type:
            group: Group | None = candidate
        else:
            group = self.new_group(group_type, group_id, now_ms)
        if group is not None:
            self.groups[group_id] = group
        return group

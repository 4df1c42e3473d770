"""The state of one partition of `__consumer_offsets`: its groups of all types, and their committed offsets.

| record types | of |
|---|---|
| 0, 1 | committed offsets; they create a group without members if there is none |
| 2 | groups of the classic protocol |
| 3 to 8, 16 | groups of the consumer protocol |
| others | share and streams groups, which this broker does not have: ignored |

A group that an event creates is a *candidate* until the records of the event are in the log. Then it becomes the group
of its id: because the records create a group of its type, or because its effects are not replayed. If the records
cannot be written it is discarded, unless its effects survive that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from odradek.broker.coordinator.classic_group import stored_group
from odradek.broker.coordinator.group_type import CLASSIC, CONSUMER, Conversion, Group, GroupEvent, MetadataChanged
from odradek.broker.coordinator.offsets import committed_offsets
from odradek.broker.coordinator.offsets.committed_offsets import CommittedOffsets
from odradek.broker.coordinator.offsets.events import OffsetContext, OffsetEvent
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER
from odradek.broker.coordinator.runtime.events import Effects, Event
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError

GroupFactories = Mapping[str, Callable[[str, int], Group]]
"""By group type, the function that makes a group of an id at a time."""

_CONSUMER_GROUP_RECORD = 3
_GROUP_TYPES = {stored_group.RECORD_TYPE: CLASSIC, **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), CONSUMER)}
_GROUP_RECORDS = {stored_group.RECORD_TYPE, _CONSUMER_GROUP_RECORD}
"""The records whose tombstones delete the group."""


class GroupCoordinatorShard:
    """The groups and their offsets; a `CoordinatorShard`."""

    def __init__(self, factories: GroupFactories) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = CommittedOffsets()
        self._factories = factories
        self._candidates: dict[str, Group] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self.groups

    # ---------------------------------------------------------------------------------------------------------- events

    def handle(self, group_id: str, event: Any, now_ms: int) -> Effects:
        group = self.groups.get(group_id)
        if isinstance(event, OffsetEvent):
            return event.effects(OffsetContext(group_id, group, self.offsets, now_ms))
        if isinstance(event, GroupEvent):
            return self._handle_request(group_id, group, event, now_ms)
        if group is None:
            return Effects()
        if isinstance(event, MetadataChanged):
            return group.metadata_changed(event.topics, event.has_new_topics, now_ms)
        return group.handle(event, now_ms)

    def busy_error(self, key: str, event: Event) -> KafkaError | None:  # noqa: ARG002 - every request waits
        """Return None: a request waits until the records of the earlier ones of its group are in the log."""
        return None

    def _handle_request(self, group_id: str, group: Group | None, event: GroupEvent, now_ms: int) -> Effects:
        is_other = group is not None and group.group_type != event.creates
        if group is not None and not (is_other and group.is_empty and event.may_replace):
            return group.handle(event, now_ms)
        candidate = self._new_group(event.creates, group_id, now_ms)
        if candidate is None:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"there are no {event.creates} groups here")
        effects = candidate.handle(event, now_ms)
        if group is not None and effects.records:
            effects.records = [*group.tombstones(), *effects.records]
        self._candidates[group_id] = candidate
        return effects

    def event_completed(self, group_id: str, effects: Effects, error: KafkaError | None) -> None:
        group: Group | None = self._candidates.pop(group_id, None)
        if isinstance(effects, Conversion):
            group = effects.new_group if error is None else None
        elif effects.replay_records or not effects.records:
            return
        if group is not None:
            self.groups[group_id] = group

    def append_completed(self, group_id: str, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        group = self.groups.get(group_id)
        return Effects() if group is None else group.append_completed(follow_up, error, now_ms)

    def loaded(self, now_ms: int) -> Iterator[tuple[str, Effects]]:
        for group_id, group in self.groups.items():
            yield group_id, group.loaded(now_ms)

    def unloaded(self) -> Iterator[Effects]:
        for group in (*self.groups.values(), *self._candidates.values()):
            yield group.unloaded()

    # --------------------------------------------------------------------------------------------------------- records

    def replay(
        self, record: CoordinatorRecord, record_offset: int, now_ms: int, producer_id: int = NO_PRODUCER
    ) -> None:
        key: Any = record.key
        if record.record_type in committed_offsets.RECORD_TYPES:
            self.offsets.replay(record, record_offset, producer_id)
            if record.value is not None and key.group not in self.groups:
                self._put_group(CLASSIC, key.group, now_ms)
            return
        group_type = _GROUP_TYPES.get(record.record_type)
        if group_type is not None:
            self._replay_group(record, group_type, key.group if group_type == CLASSIC else key.group_id, now_ms)

    def _replay_group(self, record: CoordinatorRecord, group_type: str, group_id: str, now_ms: int) -> None:
        group = self.groups.get(group_id)
        if group is None or group.group_type != group_type:
            # A tombstone here is of a group that was converted: a group of the other type has taken its place.
            group = None if record.value is None else self._put_group(group_type, group_id, now_ms)
        if group is None:
            return
        if record.value is None and record.record_type in _GROUP_RECORDS:
            del self.groups[group_id]
        else:
            group.replay(record)

    def replay_end_transaction_marker(self, producer_id: int, *, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed=committed)

    def _put_group(self, group_type: str, group_id: str, now_ms: int) -> Group | None:
        """Put the candidate, or else a new group, in place; None if groups of this type are not supported."""
        group: Group | None = self._candidates.get(group_id)
        if group is None or group.group_type != group_type:
            group = self._new_group(group_type, group_id, now_ms)
        if group is not None:
            self.groups[group_id] = group
        return group

    def _new_group(self, group_type: str, group_id: str, now_ms: int) -> Group | None:
        make = self._factories.get(group_type)
        return None if make is None else make(group_id, now_ms)

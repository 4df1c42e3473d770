"""The state of a classic group between two events: members, generation, and what is stored of them.

`group` handles the events. Kafka's `ClassicGroup` is the model.
"""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.coordinator.classic_group.members import Member, Members
from odradek.broker.coordinator.classic_group.state_table import ERRORS, TRANSITIONS, Request, State
from odradek.broker.coordinator.classic_group.stored_group import group_record, loaded_member, subscribed_topics
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored_records.group_metadata import GroupMetadataValue

CONSUMER_PROTOCOL_TYPE = "consumer"


def session_timer(member_id: str) -> TimerKey:
    """Return the timer that ends a member's session, or the wait for a member that was given its id."""
    return "session", member_id


class ClassicGroupState:
    """The state of one group.

    `changed_at_ms` is when `current` last changed; None if an old record does not have it. `now_ms` is the time of the
    event that is being handled. `topics` are those that the members subscribe to by name; None if the members are not
    consumers or one of their subscriptions cannot be read.
    """

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.members = Members()
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.current: State = State.EMPTY
        self.changed_at_ms: int | None = now_ms
        self.is_stored = False
        self.now_ms = now_ms
        self._topics: frozenset[str] | None = None

    def move_to(self, state: State) -> None:
        assert state in TRANSITIONS[self.current], f"{self.current} to {state}"
        self.current = state
        self.changed_at_ms = self.now_ms

    def begin_generation(self) -> None:
        """Begin the next generation of the members that there are, with a protocol that all support."""
        self.generation_id += 1
        self.members.not_synced.clear()
        self.protocol_name = self.members.choose_protocol() if len(self.members) else None
        self._topics = self._subscribed_topics()

    def take_over(self, members: Iterable[Member], generation_id: int) -> None:
        """Become the stable group of these consumers of a group of another type. They keep their assignments."""
        for member in members:
            self.members.add(member)
        self.generation_id = generation_id
        self.protocol_type = CONSUMER_PROTOCOL_TYPE
        self.protocol_name = self.members.choose_protocol()
        self._topics = self._subscribed_topics()
        self.current = State.STABLE
        self.is_stored = True

    # ---------------------------------------------------------------------------------------------------------- checks

    def member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode | None:
        """Return the error for a request with these ids, or None if they are those of a member."""
        if group_instance_id is not None:
            static_id = self.members.static_id(group_instance_id)
            if static_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if static_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_commit(self, committer: Committer) -> dict[TimerKey, int | None]:
        """Return the timers that a commit moves. Raises KafkaError if the committer may not make it."""
        member_id, group_instance_id, generation_id, _, is_transactional = committer
        if generation_id < 0 and self.current is State.EMPTY:
            return {}  # an admin, or a consumer with assigned partitions
        if generation_id >= 0 or member_id or group_instance_id is not None:
            error = self.member_error(member_id, group_instance_id)
            if error is None and generation_id != self.generation_id:
                error = ErrorCode.ILLEGAL_GENERATION
            if error is not None:
                raise KafkaError(error, f"the group {self.group_id} is in generation {self.generation_id}")
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group {self.group_id} has members, and none commits")
        if is_transactional:
            return {}
        error = ERRORS[Request.COMMIT][self.current]
        if error is not ErrorCode.NONE:
            raise KafkaError(error, f"the group {self.group_id} is in state {self.current.value}")
        return {session_timer(member_id): self.members[member_id].session_timeout_ms}

    def check_offset_delete(self) -> None:
        """Raise NON_EMPTY_GROUP if it has members whose topics are not known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            self.check_empty()

    def check_empty(self) -> None:
        """Raise NON_EMPTY_GROUP if it has members."""
        if self.current is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"the group {self.group_id} has members")

    def is_subscribed_to(self, topic: str) -> bool:
        if self._topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self._topics

    def retention_start(self, commit_timestamp: int) -> int | None:
        if self.protocol_type is None:
            return commit_timestamp  # it never had members
        if self.current is State.EMPTY:
            return commit_timestamp if self.changed_at_ms is None else self.changed_at_ms
        has_topics = self.protocol_type == CONSUMER_PROTOCOL_TYPE and self._topics is not None
        return commit_timestamp if has_topics and self.current is State.STABLE else None

    # --------------------------------------------------------------------------------------------------------- records

    def replay(self, record: CoordinatorRecord) -> None:
        value = record.value
        assert isinstance(value, GroupMetadataValue)
        self.members = Members()
        for stored in value.members:
            self.members.add(loaded_member(stored, value.protocol or ""))
        if value.leader is not None and value.leader in self.members:
            self.members.leader = value.leader
        self.generation_id = value.generation
        self.protocol_name = value.protocol
        self.current = State.STABLE if value.members else State.EMPTY
        self.protocol_type = value.protocol_type or None
        self.changed_at_ms = None if value.current_state_timestamp < 0 else value.current_state_timestamp
        self._topics = self._subscribed_topics()
        self.is_stored = True

    def record(self, assignments: dict[str, bytes] | None = None) -> CoordinatorRecord:
        """Return the record of the group as it is, or with these assignments by member id."""
        if assignments is None:
            assignments = {member.member_id: member.assignment for member in self.members}
        return group_record(
            self.group_id,
            self.members,
            assignments,
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            changed_at_ms=self.changed_at_ms,
        )

    def record_of_new_group(self) -> CoordinatorRecord:
        """Return the record of a group without members, even if members are joining it."""
        return group_record(
            self.group_id,
            Members(),
            {},
            protocol_type="",
            generation_id=0,
            protocol_name=None,
            changed_at_ms=self.changed_at_ms,
        )

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members)

"""What a classic group is between two events: its state, members and generation; what is stored of it, who may commit.

| from | to |
|---|---|
| Empty | PreparingRebalance |
| PreparingRebalance | CompletingRebalance, Empty |
| CompletingRebalance | Stable, PreparingRebalance |
| Stable | PreparingRebalance |
| any of them | Dead |

What happens to a group is in `odradek.broker.coordinator.classic_group.group`, which draws the whole machine. Kafka's
`ClassicGroup` is the model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from odradek.broker.coordinator.classic_group.members import Member, Members
from odradek.broker.coordinator.classic_group.stored_group import (
    group_record,
    group_tombstone,
    loaded_member,
    subscribed_topics,
)
from odradek.broker.coordinator.group_type import Committer
from odradek.broker.coordinator.runtime.events import TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.stored_records.group_metadata import GroupMetadataValue

CONSUMER_PROTOCOL_TYPE = "consumer"


class State(Enum):
    """The states, by the names that clients are told."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.EMPTY: frozenset({State.PREPARING, State.DEAD}),
    State.PREPARING: frozenset({State.COMPLETING, State.EMPTY, State.DEAD}),
    State.COMPLETING: frozenset({State.STABLE, State.PREPARING, State.DEAD}),
    State.STABLE: frozenset({State.PREPARING, State.DEAD}),
    State.DEAD: frozenset(),
}
_COMMIT_MOVES_SESSION = frozenset({State.PREPARING, State.STABLE})


def session_timer(member_id: str) -> TimerKey:
    """The key of the timer that ends a member's session, or takes an id back that nobody came back with."""
    return "session", member_id


class ClassicGroupState:
    """The state. `changed_at_ms` is when it last moved to another one; None if an old record does not say.

    `topics` are those that the members subscribe to by name; None if they are not consumers or cannot be understood.
    """

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.members = Members()
        self.generation_id = 0
        self.protocol_name: str | None = None
        self.current: State = State.EMPTY
        self.changed_at_ms: int | None = now_ms
        self.is_stored = False
        self._protocol_type: str | None = None
        self._topics: frozenset[str] | None = None
        self._now_ms = now_ms

    @property
    def protocol_type(self) -> str:
        return self._protocol_type or ""

    @property
    def state(self) -> str:
        return self.current.value

    @property
    def members_count(self) -> int:
        return len(self.members)

    @property
    def is_empty(self) -> bool:
        return self.current is State.EMPTY

    # --------------------------------------------------------------------------------------------------------- offsets

    def check_commit(
        self,
        committer: Committer,
        partitions: Collection[tuple[str, int]],  # noqa: ARG002 - a generation commits whatever it reads
    ) -> dict[TimerKey, int | None]:
        member_id, group_instance_id, generation_id, _, is_transactional = committer
        if generation_id < 0 and self.current is State.EMPTY:
            return {}  # an admin, or a consumer with assigned partitions
        if generation_id >= 0 or member_id or group_instance_id is not None:
            error = self.why_not(member_id, group_instance_id)
            if error is None and generation_id != self.generation_id:
                error = ErrorCode.ILLEGAL_GENERATION
            if error is not None:
                raise KafkaError(error, f"the group {self.group_id} is in generation {self.generation_id}")
        elif not is_transactional:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"the group {self.group_id} has members, and none commits")
        if is_transactional:
            return {}
        if self.current is State.COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"the group {self.group_id} is rebalancing")
        if self.current not in _COMMIT_MOVES_SESSION:
            return {}
        return {session_timer(member_id): self.members[member_id].session_timeout_ms}

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Anybody may read the offsets of a classic group."""

    def check_offset_delete(self) -> None:
        if self.current is not State.EMPTY and self._protocol_type != CONSUMER_PROTOCOL_TYPE:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"the group {self.group_id} has members")

    def check_delete(self) -> None:
        if self.current is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"the group {self.group_id} has members")

    def is_subscribed_to(self, topic: str) -> bool:
        if self._topics is None:
            return self._protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self._topics

    def retention_start(self, commit_timestamp: int) -> int | None:
        if self._protocol_type is None:
            return commit_timestamp  # only offsets are kept here
        if self.current is State.EMPTY:
            return commit_timestamp if self.changed_at_ms is None else self.changed_at_ms
        knows_topics = self._protocol_type == CONSUMER_PROTOCOL_TYPE and self._topics is not None
        return commit_timestamp if knows_topics and self.current is State.STABLE else None

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
        self._protocol_type = value.protocol_type or None
        self.changed_at_ms = None if value.current_state_timestamp < 0 else value.current_state_timestamp
        self._topics = self.subscriptions()
        self.is_stored = True

    def take_over(self, members: Iterable[Member], generation_id: int) -> None:
        """Become the stable group of these consumers, which were a group of another type; their assignments stand."""
        for member in members:
            self.members.add(member)
        self.generation_id = generation_id
        self._protocol_type = CONSUMER_PROTOCOL_TYPE
        self.protocol_name = self.members.choose_protocol()
        self._topics = self.subscriptions()
        self.current = State.STABLE
        self.is_stored = True

    def record(self) -> CoordinatorRecord:
        """The record of the group as it is."""
        return self.record_with({member.member_id: member.assignment for member in self.members})

    def tombstones(self) -> list[CoordinatorRecord]:
        return [group_tombstone(self.group_id)]

    def record_with(self, assignments: dict[str, bytes]) -> CoordinatorRecord:
        """The record of the group as it is, with these assignments."""
        return group_record(
            self.group_id,
            self.members,
            assignments,
            protocol_type=self.protocol_type,
            generation_id=self.generation_id,
            protocol_name=self.protocol_name,
            changed_at_ms=self.changed_at_ms,
        )

    def record_of_new_group(self) -> CoordinatorRecord:
        """The record of a group that nobody has joined yet."""
        return group_record(
            self.group_id,
            Members(),
            {},
            protocol_type="",
            generation_id=0,
            protocol_name=None,
            changed_at_ms=self.changed_at_ms,
        )

    def move_to(self, state: State) -> None:
        """Change the state, now."""
        assert state in TRANSITIONS[self.current], f"{self.current} to {state}"
        self.current = state
        self.changed_at_ms = self._now_ms

    def why_not(self, member_id: str, group_instance_id: str | None) -> ErrorCode | None:
        """Why a request that names this member is refused; None if it is not."""
        if group_instance_id is not None:
            static_id = self.members.static_id(group_instance_id)
            if static_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if static_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def subscriptions(self) -> frozenset[str] | None:
        if self._protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        return subscribed_topics(member.metadata(self.protocol_name) for member in self.members)

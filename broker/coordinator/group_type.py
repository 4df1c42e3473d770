"""The interface of a group of any type: what the coordinator calls, and the events and effects that are of groups only.

A group is one object, a pure state machine; `odradek.broker.coordinator.runtime` says in which order its methods are
called and what becomes of its effects. A machine that changes its state in `replay` alone needs no rollback: if records
cannot be written, nothing has changed. The classic group changes its state when it handles an event
(`replay_records` is false), and repairs it in `append_completed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from odradek.broker.coordinator.runtime.events import Effects, Event, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.coordinator.sessions import MemberSession
from odradek.protocol.errors import ErrorCode

CLASSIC = "classic"
CONSUMER = "consumer"


MayDescribe = Callable[[str], bool]
"""Returns whether the client of a request may describe a topic. It is also called in threads."""


class GroupEvent(Event, frozen=True):
    """A request of a member.

    `creates` is the type of the group that it creates where there is none, or an empty one of another type, which it
    `may_replace`.
    """

    creates: ClassVar[str] = CLASSIC

    @property
    def may_replace(self) -> bool:
        return True


class MetadataChanged(msgspec.Struct, frozen=True):
    """Topics were created or deleted, or got more partitions. For groups with `follows_metadata`."""

    topics: frozenset[str]
    has_new_topics: bool


class Conversion(Effects, kw_only=True):
    """Effects of a group that becomes a group of another type: `new_group`, once the records are in the log.

    The new group has the records in its state already. If they cannot be written, the old group stays as it was.
    """

    new_group: Group
    replay_records: bool = False

    @property
    def survive_failure(self) -> bool:
        return False


class Committer(NamedTuple):
    """The sender of a commit: a member with its generation or member epoch, or a client outside with -1 and no ids."""

    member_id: str
    group_instance_id: str | None
    generation_id: int
    api_version: int
    is_transactional: bool


class Group(Protocol):
    """One group of any type. All methods are called on the event loop, but `replay` on a thread while loading.

    `group_type` is the type that ListGroups returns from version 5 on, `protocol_type` the one that it always returned
    ("" if unknown).
    """

    group_id: str
    group_type: ClassVar[str]
    follows_metadata: ClassVar[bool]

    @property
    def protocol_type(self) -> str: ...

    @property
    def state(self) -> str:
        """The state's name in ListGroups and DescribeGroups, which may depend on the time of the last event."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has no members, so that a group of another type may replace it."""
        ...

    @property
    def members_count(self) -> int: ...

    def handle(self, event: Any, now_ms: int) -> Effects:
        """Handle a `GroupEvent`, a TimerExpired, WorkFailed, or a result of `Effects.work`.

        The work may be that of a group that was converted to this one. Raises KafkaError, having changed nothing.
        """
        ...

    def append_completed(self, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        """Return the effects of the end of an append whose effects had a `follow_up`; `error` is as clients get it."""
        ...

    def replay(self, record: CoordinatorRecord) -> None:
        """Change the state as a record of this group says, read from the log or just written."""
        ...

    def loaded(self, now_ms: int) -> Effects:
        """Return the timers to run after the log was replayed."""
        ...

    def unloaded(self) -> Effects:
        """Return NOT_COORDINATOR as the reply to every request that waits: another broker has the group now."""
        ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """Return the records that delete the group from the log, without its offsets."""
        ...

    def metadata_changed(self, changed_topics: Collection[str], has_new_topics: bool, now_ms: int) -> Effects:
        """Handle MetadataChanged; called if `follows_metadata`."""
        ...

    def sessions(self) -> Iterator[MemberSession]:
        """Yield the sessions of all members."""
        ...

    def check_commit(self, committer: Committer, partitions: Collection[tuple[str, int]]) -> dict[TimerKey, int | None]:
        """Return the timers that this commit moves. Raises KafkaError if the committer may not make it."""
        ...

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise KafkaError unless that member may read the group's offsets."""
        ...

    def check_offset_delete(self) -> None:
        """Raise KafkaError unless offsets of topics without subscribers may be deleted."""
        ...

    def check_delete(self) -> None:
        """Raise KafkaError unless the group may be deleted."""
        ...

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member reads that topic, so that its offsets are kept."""
        ...

    def retention_start(self, commit_timestamp: int) -> int | None:
        """Return when the retention of an offset begins that was committed at `commit_timestamp`; None: it is kept."""
        ...

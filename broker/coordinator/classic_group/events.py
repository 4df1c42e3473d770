"""The requests of the classic protocol as events: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.group_type import GroupEvent, MayDescribe

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols (assignors) that a member supports, by preference."""


class Join(GroupEvent, frozen=True):
    """JoinGroup. A member without an id gets `new_member_id`.

    `requires_known_member_id`: a new dynamic member gets its id in an error, and joins again with it (KIP-394, from
    version 4 on). `may_skip_assignment`: the client can read that the leader is not to assign (KIP-814, version 9).
    `may_describe`: None if it may describe every topic.
    """

    member_id: str
    new_member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str
    requires_known_member_id: bool
    may_skip_assignment: bool
    may_describe: MayDescribe | None = None


class Sync(GroupEvent, frozen=True):
    """SyncGroup. The leader sends `assignments` by member id. Protocol type and name (KIP-559) may be missing."""

    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: dict[str, bytes]


class Heartbeat(GroupEvent, frozen=True):
    """Heartbeat."""

    generation_id: int
    member_id: str
    group_instance_id: str | None


class Leaving(msgspec.Struct, frozen=True):
    """One of the members that leave. An admin removes a static member by its instance id, with an empty member id."""

    member_id: str
    group_instance_id: str | None
    reason: str


class Leave(GroupEvent, frozen=True):
    """LeaveGroup."""

    members: tuple[Leaving, ...]

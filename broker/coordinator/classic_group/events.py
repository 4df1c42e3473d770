"""What clients of the classic protocol ask of a group: the four requests as events."""

from __future__ import annotations

import msgspec

from odradek.broker.coordinator.group_type import GroupEvent

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of the protocols (assignors) that a member supports, by preference."""


class Join(GroupEvent, frozen=True):
    """JoinGroup. `new_member_id` is the id to take if the member has none yet.

    `requires_known_member_id`: a new dynamic member is sent away with its id first (KIP-394, from version 4 on).
    `may_skip_assignment`: it understands that a leader may have nothing to assign (KIP-814, version 9).
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


class Sync(GroupEvent, frozen=True):
    """SyncGroup. `assignments` by member id come from the leader; protocol type and name (KIP-559) may be unknown."""

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
    """One of the members that leave; an empty member id with an instance id: a static one that an admin takes out."""

    member_id: str
    group_instance_id: str | None
    reason: str


class Leave(GroupEvent, frozen=True):
    """LeaveGroup."""

    members: tuple[Leaving, ...]

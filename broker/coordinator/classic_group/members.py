"""The members of a classic group: its leader, the protocols that all support, the members that it waits for.

Between calls:
- There is a leader exactly when there are members: the first to join, replaced when it is removed.
- `joining` of a member is the pending reply of its parked JoinGroup, `syncing` that of its parked SyncGroup.
- `pending` are ids that were given out and that no member has joined with yet (KIP-394).
- `not_synced` are members of this generation that have not sent SyncGroup.

Kafka's `ClassicGroup` and `ClassicGroupMember` are the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from odradek.broker.coordinator.classic_group.events import Join, Protocols
from odradek.broker.coordinator.runtime.events import PendingReply


class Member(msgspec.Struct):
    """One member. `is_new`: its first JoinGroup is not answered yet, so it cannot send heartbeats."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: PendingReply | None = None
    syncing: PendingReply | None = None
    is_new: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it is parked, so that it sends no heartbeats. A new one may be gone all the same."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the member's metadata for that protocol; b"" if it does not support it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


def new_member(join: Join, member_id: str) -> Member:
    """Return the member of a first JoinGroup, which is parked."""
    return Member(
        member_id,
        join.group_instance_id,
        join.client_id,
        join.client_host,
        join.rebalance_timeout_ms,
        join.session_timeout_ms,
        join.protocols,
        joining=join.pending_reply,
        is_new=True,
    )


class Members:
    """The registry. Iterating yields the members in the order in which they joined.

    Members that have joined and protocols that are supported are counted, so that a rebalance of n members takes n
    steps and not n².
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, None] = {}
        self.not_synced: dict[str, None] = {}
        self.joined_count = 0
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self._supporters: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_id.values())

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._by_id

    def __getitem__(self, member_id: str) -> Member:
        return self._by_id[member_id]

    def get(self, member_id: str) -> Member | None:
        return self._by_id.get(member_id)

    def static_id(self, group_instance_id: str) -> str | None:
        """Return the id of the static member with that instance id."""
        return self._static.get(group_instance_id)

    def add(self, member: Member) -> None:
        """Add a member. Its JoinGroup is parked if it has a `joining` reply."""
        self._count(member, 1)
        self._by_id[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member, or a pending id. Return the member, if it was one."""
        self.pending.pop(member_id, None)
        self.not_synced.pop(member_id, None)
        member = self._by_id.pop(member_id, None)
        if member is not None:
            self._count(member, -1)
            if member.group_instance_id is not None:
                self._static.pop(member.group_instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._by_id), None)
        return member

    def replace_static(self, old_id: str, new_id: str) -> tuple[Member, Member]:
        """Give a static member a new id, because its instance came back; the old id is fenced (KIP-345).

        Return the member before, with its pending replies, and after.
        """
        was_leader = self.leader == old_id
        old = self._by_id[old_id]
        member: Member = msgspec.structs.replace(old, member_id=new_id, joining=None, syncing=None, is_new=False)
        self.remove(old_id)
        self.add(member)
        if was_leader:
            self.leader = new_id
        return old, member

    def restore_static(self, old: Member, new_id: str) -> None:
        """Undo `replace_static`; the pending replies are gone."""
        self.remove(new_id)
        old.joining = old.syncing = None
        self.add(old)

    def rejoin(self, member: Member, join: Join) -> None:
        """Update the member from its JoinGroup, which is parked."""
        self._count(member, -1)
        member.protocols = join.protocols
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.session_timeout_ms
        member.joining = join.pending_reply
        self._count(member, 1)

    def take_joining(self, member: Member) -> PendingReply | None:
        """Take the pending reply of the parked JoinGroup off the member, for the caller to complete."""
        pending_reply, member.joining = member.joining, None
        if pending_reply is not None:
            self.joined_count -= 1
        return pending_reply

    def elect_joined_leader(self) -> bool:
        """Make a member that has joined the leader; return False if none has."""
        leader = None if self.leader is None else self._by_id[self.leader]
        if leader is None or leader.joining is None:
            leader = next((member for member in self if member.joining is not None), None)
            if leader is None:
                return False
            self.leader = leader.member_id
        return True

    @property
    def all_joined(self) -> bool:
        """Whether all members have joined, and no id that was given out is pending."""
        return not self.pending and self.joined_count == len(self._by_id)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def supports_any(self, protocols: Protocols) -> bool:
        """Return whether all members support one of these protocols."""
        return any(self._supporters[name] == len(self._by_id) for name, _ in protocols)

    def choose_protocol(self) -> str:
        """Return the protocol that all support and most prefer; in a tie, the one that a member named first."""
        votes = Counter(self._vote(member) for member in self)
        return votes.most_common(1)[0][0]

    def _vote(self, member: Member) -> str:
        return next(name for name, _ in member.protocols if self._supporters[name] == len(self._by_id))

    def _count(self, member: Member, by: int) -> None:
        self.joined_count += by * (member.joining is not None)
        for name in {name for name, _ in member.protocols}:
            self._supporters[name] += by
            if not self._supporters[name]:
                del self._supporters[name]  # a member may name another protocol each time

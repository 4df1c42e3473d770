"""The members of a classic group: who is in it, who leads, which protocols all support, whom the group waits for.

Between calls:
- There is a leader exactly when there are members: the first to come, replaced when it goes.
- `joining` of a member is the pending reply of its parked JoinGroup, `syncing` that of its parked SyncGroup.
- `pending` are ids that were given out and have not come back yet (KIP-394); they are no members.
- `not_synced` are members of this generation that have not asked for their assignment.

Kafka's `ClassicGroup` and `ClassicGroupMember` are the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from odradek.broker.coordinator.classic_group.events import Join, Protocols
from odradek.broker.coordinator.runtime.events import PendingReply


class Member(msgspec.Struct):
    """One member. `is_new`: it has not been answered since it came, so it cannot know its id or send heartbeats."""

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
        """Whether it waits for the group, and so need not send heartbeats; a new one may be gone all the same."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """What the member said for that protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")


def new_member(join: Join, member_id: str) -> Member:
    """A member as its first JoinGroup describes it."""
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
    """The registry. Iterating gives the members in the order in which they came.

    What every JoinGroup asks (have all joined, what do all speak) is counted, so that a rebalance of n members does not
    look at n² of them.
    """

    def __init__(self) -> None:
        self.leader: str | None = None
        self.pending: dict[str, None] = {}
        self.not_synced: dict[str, None] = {}
        self.joined_count = 0
        self._by_id: dict[str, Member] = {}
        self._static: dict[str, str] = {}
        self._speakers: Counter[str] = Counter()

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
        """The id of the static member with that instance id."""
        return self._static.get(group_instance_id)

    def add(self, member: Member) -> None:
        """Take in a member, who waits for the group if it has a `joining` reply."""
        self._count(member, 1)
        self._by_id[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.group_instance_id is not None:
            self._static[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Take out a member, or an id that is pending; the member, if it was one."""
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
        """Give a static member a new id: its instance came back, and whoever has the old one is fenced (KIP-345).

        Returns the member as it was, with its pending_replies, and as it is.
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
        """Undo `replace_static`: the member is as it was, without its pending_replies."""
        self.remove(new_id)
        old.joining = old.syncing = None
        self.add(old)

    def rejoin(self, member: Member, join: Join) -> None:
        """Take over what a JoinGroup says of a member, and park it."""
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
        """Make sure that the leader is one who has joined; False if nobody has."""
        leader = None if self.leader is None else self._by_id[self.leader]
        if leader is None or leader.joining is None:
            leader = next((member for member in self if member.joining is not None), None)
            if leader is None:
                return False
            self.leader = leader.member_id
        return True

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing: neither a member, nor one who was sent away with its id and is to come back."""
        return not self.pending and self.joined_count == len(self._by_id)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def can_speak(self, protocols: Protocols) -> bool:
        """Whether one of these protocols is supported by all members."""
        return any(self._speakers[name] == len(self._by_id) for name, _ in protocols)

    def choose_protocol(self) -> str:
        """The protocol that all support and most prefer; of several with as many votes, the one voted for first."""
        votes = Counter(self._vote(member) for member in self)
        return votes.most_common(1)[0][0]

    def _vote(self, member: Member) -> str:
        return next(name for name, _ in member.protocols if self._speakers[name] == len(self._by_id))

    def _count(self, member: Member, by: int) -> None:
        self.joined_count += by * (member.joining is not None)
        for name in {name for name, _ in member.protocols}:
            self._speakers[name] += by
            if not self._speakers[name]:
                del self._speakers[name]  # a member may come with another name each time

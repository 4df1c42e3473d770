"""A member of a consumer group: its subscription, its partitions, and the state of its reconciliation.

| state | the member … | leaves it by |
|---|---|---|
| STABLE | has its whole target of its epoch | a newer target |
| UNREVOKED_PARTITIONS | must revoke partitions; stays in its epoch until it has | a heartbeat without them |
| UNRELEASED_PARTITIONS | is in the target's epoch, but others still have some of its partitions | their revocation |
| UNKNOWN | was stored by a newer broker in a state that this one does not have | rejoining without partitions |

`member_epoch` is the epoch of the next heartbeat. `previous_member_epoch` is accepted too, as long as the member owns
no partition of others: the response with the newer epoch may have been lost. Members are immutable; a change makes a
new object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum

import msgspec

from odradek.protocol.stored_records.consumer_group import ClassicMemberMetadata

LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""A static member that will come back: it keeps its partitions until its session times out."""

OwnedPartitions = dict[bytes, dict[int, int]]
"""By topic id and partition, the epoch in which the partition was assigned to the member."""

TopicPartitionIds = Mapping[bytes, Collection[int]]
"""Partitions by topic id."""


class MemberState(IntEnum):
    """The numbers are those of the stored records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> MemberState:  # noqa: ARG003 - the signature is the enum's
        return cls.UNKNOWN


class ConsumerMember(msgspec.Struct, frozen=True):
    """One member. `classic` is set while it uses the classic protocol; "" is no regular expression."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    assigned: OwnedPartitions = {}
    pending_revocation: OwnedPartitions = {}
    classic: ClassicMemberMetadata | None = None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == target_epoch


def same_partitions(one: OwnedPartitions, other: OwnedPartitions) -> bool:
    """Return whether both have the same partitions, in whatever epochs."""
    if one is other:
        return True
    return one.keys() == other.keys() and all(one[topic].keys() == other[topic].keys() for topic in one)


def are_within(partitions: TopicPartitionIds, assigned: OwnedPartitions) -> bool:
    """Return whether all of `partitions` are in `assigned`."""
    return all(
        partition in assigned.get(topic_id, {}) for topic_id, numbers in partitions.items() for partition in numbers
    )


def share_any(partitions: TopicPartitionIds, owned: OwnedPartitions) -> bool:
    """Return whether any of `partitions` is in `owned`."""
    return any(
        partition in owned.get(topic_id, {}) for topic_id, numbers in partitions.items() for partition in numbers
    )

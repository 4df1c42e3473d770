"""A classic group as it is stored in `__consumer_offsets` (record type 2), and what its members say to each other.

Kafka 4.3 writes version 3. The subscription is opaque to brokers, apart from the topics in it: offsets of topics that
nobody subscribes to any more expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from odradek.broker.coordinator.classic_group.members import Member, Members
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.protocol.codec import decode
from odradek.protocol.errors import RemoteProtocolError
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.stored_records.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata

RECORD_TYPE = 2
_VALUE_VERSION = 3
_INT16_SIZE = 2


def group_record(
    group_id: str,
    members: Members,
    assignments: Mapping[str, bytes],
    *,
    protocol_type: str,
    generation_id: int,
    protocol_name: str | None,
    changed_at_ms: int | None,
) -> CoordinatorRecord:
    """The record that the group is to be loaded from; `assignments` are by member id."""
    value = GroupMetadataValue(
        protocol_type,
        generation_id,
        protocol_name,
        members.leader,
        -1 if changed_at_ms is None else changed_at_ms,
        [_stored(member, protocol_name, assignments[member.member_id]) for member in members],
    )
    return CoordinatorRecord(RECORD_TYPE, GroupMetadataKey(group_id), value, _VALUE_VERSION)


def group_tombstone(group_id: str) -> CoordinatorRecord:
    """The record that takes the group back."""
    return CoordinatorRecord(RECORD_TYPE, GroupMetadataKey(group_id), None)


def loaded_member(stored: MemberMetadata, protocol_name: str) -> Member:
    """A member as a broker that loads the group knows it: of its protocols there is only the one in use."""
    timeout = stored.session_timeout if stored.rebalance_timeout == -1 else stored.rebalance_timeout
    return Member(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        timeout,
        stored.session_timeout,
        ((protocol_name, bytes(stored.subscription)),),
        bytes(stored.assignment),
    )


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics that consumers subscribe to by name; None if one of the subscriptions cannot be read.

    Every version begins with the fields of version 0.
    """
    try:
        return frozenset(
            topic
            for subscription in subscriptions
            for topic in decode(ConsumerProtocolSubscription, 0, subscription, _INT16_SIZE).topics
        )
    except RemoteProtocolError:
        return None


def _stored(member: Member, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.session_timeout_ms,
        member.metadata(protocol_name),
        assignment,
    )

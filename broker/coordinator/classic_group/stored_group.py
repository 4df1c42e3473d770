"""The record of a classic group in `__consumer_offsets` (record type 2).

Kafka 4.3 writes version 3. Brokers read only the topics of the members' subscriptions: offsets of topics without
subscribers expire.
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
    """Return the record of the group; `assignments` are by member id."""
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
    """Return the record that deletes the group."""
    return CoordinatorRecord(RECORD_TYPE, GroupMetadataKey(group_id), None)


def loaded_member(stored: MemberMetadata, protocol_name: str) -> Member:
    """Return a member from its record, which has only the protocol in use."""
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
    """Return the topics that consumers subscribe to by name; None if a subscription cannot be read.

    Only version 0 is read: every version begins with its fields.
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

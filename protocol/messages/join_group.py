"""JoinGroup (API key 11): a consumer joins its group, or joins it again for a rebalance (the classic protocol).

The group's coordinator delays its responses until all members have joined or the rebalance timeout has passed. It
chooses an assignor that all support, and sends the subscriptions of all members to one of them, the leader. SyncGroup
follows. Kafka Connect and others use the protocol with another `protocol_type`.
"""

from typing import Annotated

from odradek.protocol.schema import (
    Message,
    Structure,
    binary,
    boolean,
    i16,
    i32,
    ignorable,
    message,
    nullable,
    since,
    string,
)


class JoinGroupRequestProtocol(Structure):
    """An assignor that the member supports."""

    name: string = ""
    # Opaque to the broker; from consumers a `ConsumerProtocolSubscription`: topics, partitions owned, rack.
    metadata: binary = b""


@message(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupRequest(Message):
    """Versions 0–9, flexible from 6.

    v1 separates the time to rejoin from the session timeout (KIP-62). From v4 on a new member first gets
    MEMBER_ID_REQUIRED (79) with its id, and joins again with that id, so that a client which does not return is never a
    member (KIP-394). v5 adds static members: a member that returns with the same instance id keeps its partitions,
    without a rebalance (KIP-345). v7 changes only the response. v8 adds a reason for the broker's log (KIP-800). With
    v3 and v9 the client declares what it supports: waiting for the throttle time itself (KIP-219), `skip_assignment`
    (KIP-814).
    """

    group_id: string = ""
    session_timeout_ms: i32 = 0  # without a heartbeat for so long the member is removed
    # How long to wait for members to rejoin; -1, as in v0: the session timeout.
    rebalance_timeout_ms: Annotated[i32, since(1), ignorable] = -1
    member_id: string = ""  # empty the first time
    group_instance_id: Annotated[string | None, since(5)] = None  # of a static member
    protocol_type: string = ""  # `consumer` or `connect`, the same for all members
    protocols: list[JoinGroupRequestProtocol] = []  # by preference
    reason: Annotated[string | None, since(8), ignorable] = None


class JoinGroupResponseMember(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(5), ignorable] = None
    metadata: binary = b""


@message(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse(Message):
    """Versions 0–9, flexible from 6.

    v2 adds the throttle time (KIP-124), for which the client itself waits from v3 on (KIP-219). v4 may return
    MEMBER_ID_REQUIRED (KIP-394), v5 FENCED_INSTANCE_ID (82) to a static member that was replaced (KIP-345). v7 adds the
    protocol type, as a check (KIP-559). In v9 `skip_assignment` instructs a static leader that returns to keep the
    present assignment; it still receives the members (KIP-814).
    """

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    error_code: i16 = 0
    generation_id: i32 = -1  # increases with each rebalance; -1 with an error
    protocol_type: Annotated[string | None, since(7), ignorable] = None
    # The chosen assignor; with an error None from v7 on, empty before.
    protocol_name: Annotated[string | None, nullable(7)] = ""
    leader: string = ""  # member id of the leader
    skip_assignment: Annotated[boolean, since(9)] = False
    member_id: string = ""
    members: list[JoinGroupResponseMember] = []  # all of them, for the leader; empty for others

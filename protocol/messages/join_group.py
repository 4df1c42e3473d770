"""JoinGroup (API key 11): a consumer enters its group, or enters it again for a rebalance (the classic protocol).

It goes to the group's coordinator, who holds the answers back until all members have come or the rebalance timeout has
passed, picks an assignor that all support, and tells one member, the leader, what all the others subscribe to.
SyncGroup follows. Kafka Connect and others share the protocol under another `protocol_type`.
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

    v1 separates the time to rejoin from that between heartbeats (KIP-62). From v4 on a new member is first refused with
    MEMBER_ID_REQUIRED (79) and its id, and comes again with it, so that members which never come back leave nothing
    behind (KIP-394). v5 brings static members: one that returns with the same instance id keeps its partitions and
    causes no rebalance (KIP-345). v7 is new in the response. v8 adds a reason for the broker's log (KIP-800). v3 and v9
    say what the client understands: waiting out a throttle (KIP-219), `skip_assignment` (KIP-814).
    """

    group_id: string = ""
    session_timeout_ms: i32 = 0  # without a heartbeat for so long the member is out
    # How long to wait for members to rejoin; -1, as in v0: the session timeout.
    rebalance_timeout_ms: Annotated[i32, since(1), ignorable] = -1
    member_id: string = ""  # empty the first time
    group_instance_id: Annotated[string | None, since(5)] = None  # of a static member
    protocol_type: string = ""  # `consumer`, or `connect`; all members must agree
    protocols: list[JoinGroupRequestProtocol] = []  # by preference
    reason: Annotated[string | None, since(8), ignorable] = None


class JoinGroupResponseMember(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(5), ignorable] = None
    metadata: binary = b""


@message(key=11, versions=(0, 9), flexible_since=6)
class JoinGroupResponse(Message):
    """Versions 0–9, flexible from 6.

    v2 adds the throttle time (KIP-124), waited out by the client from v3 on (KIP-219). v4 may say MEMBER_ID_REQUIRED
    (KIP-394), v5 FENCED_INSTANCE_ID (82) to a static member that was replaced (KIP-345). v7 repeats the protocol type,
    for checking (KIP-559). v9 can tell a returning static leader that no assignment is due, although it must know the
    members (KIP-814).
    """

    throttle_time_ms: Annotated[i32, since(2), ignorable] = 0
    error_code: i16 = 0
    generation_id: i32 = -1  # grows with each rebalance; -1 with an error
    protocol_type: Annotated[string | None, since(7), ignorable] = None
    # The chosen assignor; from v7 on None with an error, before empty.
    protocol_name: Annotated[string | None, nullable(7)] = ""
    leader: string = ""  # member id of the leader
    skip_assignment: Annotated[boolean, since(9)] = False
    member_id: string = ""
    members: list[JoinGroupResponseMember] = []  # all of them, for the leader; empty for others

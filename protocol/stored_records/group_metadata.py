"""A group of the classic protocol in `__consumer_offsets` (record type 2), written after every rebalance."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, binary, i32, i64, message, since, string


@message(versions=(0, 0))
class GroupMetadataKey(Message):
    """Record type 2."""

    group: string = ""


class MemberMetadata(Structure):
    member_id: string = ""
    group_instance_id: Annotated[string | None, since(3)] = None
    client_id: string = ""
    client_host: string = ""
    rebalance_timeout: Annotated[i32, since(1)] = -1
    session_timeout: i32 = 0
    subscription: binary = b""
    assignment: binary = b""


@message(versions=(0, 4), flexible_since=4)
class GroupMetadataValue(Message):
    """Versions 0–4, flexible from 4.

    v1 adds the rebalance timeout of members. v2 adds the time of the last change of state. v3 adds the instance id of
    static members (KIP-345). Subscription and assignment are opaque; of consumers they are as in `consumer_protocol`.
    """

    protocol_type: string = ""
    generation: i32 = 0
    protocol: string | None = ""
    leader: string | None = ""
    current_state_timestamp: Annotated[i64, since(2)] = -1
    members: list[MemberMetadata] = []

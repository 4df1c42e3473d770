"""AddRaftVoter (API key 80): a controller becomes a voter of the metadata quorum (KIP-853).

An admin client sends it, or the controller itself.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, Structure, boolean, i16, i32, message, since, string, u16, uuid


class Listener(Structure):
    name: string = ""
    host: string = ""
    port: u16 = 0


@message(key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterRequest(Message):
    """Versions 0–1, flexible.

    v1 can request the response before the new set is committed, which a controller needs that adds itself (KIP-1186).
    """

    cluster_id: string | None = ""  # None unchecked
    timeout_ms: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[boolean, since(1)] = True  # False: answer once the leader has written it


@message(key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterResponse(Message):
    """Versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # DUPLICATE_VOTER (126), INCONSISTENT_CLUSTER_ID (104), …
    error_message: string | None = ""

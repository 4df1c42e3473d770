"""AddRaftVoter (API key 80)."""

from typing import Annotated

from protocol.schema import Message, Structure, ZERO_UUID, boolean, i16, i32, message, since, string, u16, uuid


class Listener(Structure):
    name: string = ""
    host: string = ""
    port: u16 = 0


@message(key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterRequest(Message):
    """AddRaftVoterRequest, versions 0–1, flexible."""

    cluster_id: string | None = ""
    timeout_ms: i32 = 0
    voter_id: i32 = 0
    voter_directory_id: uuid = ZERO_UUID
    listeners: list[Listener] = []
    ack_when_committed: Annotated[boolean, since(1)] = True


@message(key=80, versions=(0, 1), flexible_since=0)
class AddRaftVoterResponse(Message):
    """AddRaftVoterResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""

"""RemoveRaftVoter (API key 81)."""

from protocol.schema import Message, ZERO_UUID, i16, i32, message, string, uuid


@message(key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterRequest(Message):
    """RemoveRaftVoterRequest, version 0, flexible."""

    cluster_id: string | None = ""
    voter_id: i32 = 0
    voter_directory_id: uuid = ZERO_UUID


@message(key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterResponse(Message):
    """RemoveRaftVoterResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""

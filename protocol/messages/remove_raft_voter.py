"""RemoveRaftVoter (API key 81): an admin client removes a controller from the metadata quorum's voters (KIP-853)."""

from odradek.protocol.schema import ZERO_UUID, Message, i16, i32, message, string, uuid


@message(key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterRequest(Message):
    """Version 0, flexible."""

    cluster_id: string | None = ""  # None unchecked
    voter_id: i32 = 0
    voter_directory_id: uuid = ZERO_UUID


@message(key=81, versions=(0, 0), flexible_since=0)
class RemoveRaftVoterResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # VOTER_NOT_FOUND (127), INCONSISTENT_CLUSTER_ID (104), …
    error_message: string | None = ""

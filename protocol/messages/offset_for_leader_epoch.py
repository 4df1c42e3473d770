"""OffsetForLeaderEpoch (API key 23): clients find where an epoch of leadership ended in the leader's log.

A follower sends it before it truncates (KIP-101). A consumer sends it after a change of leaders, to detect that records
it has read were lost (KIP-320).
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, i64, ignorable, message, since, string


class OffsetForLeaderPartition(Structure):
    partition: i32 = 0
    # The client's; FENCED_LEADER_EPOCH (74) if it is old, UNKNOWN_LEADER_EPOCH (75) if too new; -1: not checked.
    current_leader_epoch: i32 = -1
    leader_epoch: i32 = 0  # the epoch whose end is requested


class OffsetForLeaderTopic(Structure):
    topic: string = ""
    partitions: list[OffsetForLeaderPartition] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest(Message):
    """Versions 2–4, flexible from 4.

    Kafka 4.0 dropped v0 and v1 (KIP-896). v2 adds the current epoch of the client, for fencing (KIP-320). v3
    adds the replica id, because only followers may see offsets beyond the high watermark.
    """

    replica_id: Annotated[i32, since(3), ignorable] = -2  # broker id of a follower; -1 a consumer; -2 a debugging tool
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Structure):
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: i32 = -1  # the largest epoch here that is not above the requested one; -1 without one
    end_offset: i64 = -1  # exclusive: where the next epoch starts, or the log ends; -1 with epoch -1


class OffsetForLeaderTopicResult(Structure):
    topic: string = ""
    partitions: list[EpochEndOffset] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse(Message):
    """Versions 2–4, flexible from 4.

    v1 added the epoch of the end offset, because the leader may not have the requested one (KIP-279); v2 adds the
    throttle time.
    """

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []

"""OffsetForLeaderEpoch (API key 23): where, by the leader's log, an epoch of leadership ended.

A follower asks the leader before it truncates (KIP-101), a consumer to find out after a change of leaders whether
records that it has read were lost (KIP-320).
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i16, i32, i64, ignorable, message, since, string


class OffsetForLeaderPartition(Structure):
    partition: i32 = 0
    # As the asker knows it: FENCED_LEADER_EPOCH (74) if old, UNKNOWN_LEADER_EPOCH (75) if ahead; -1 unchecked.
    current_leader_epoch: i32 = -1
    leader_epoch: i32 = 0  # the epoch asked about


class OffsetForLeaderTopic(Structure):
    topic: string = ""
    partitions: list[OffsetForLeaderPartition] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochRequest(Message):
    """Versions 2–4, flexible from 4.

    Kafka 4.0 dropped v0 and v1 (KIP-896). v2 adds the asker's idea of the current epoch, for fencing (KIP-320), v3 the
    replica id, since a consumer must not see beyond the high watermark and a follower must.
    """

    replica_id: Annotated[i32, since(3), ignorable] = -2  # broker id of a follower; -1 a consumer; -2 a debugging tool
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(Structure):
    error_code: i16 = 0
    partition: i32 = 0
    leader_epoch: i32 = -1  # the largest epoch here that is not above the one asked about; -1 when there is none
    end_offset: i64 = -1  # exclusive: where the next epoch starts, or the log ends; -1 with epoch -1


class OffsetForLeaderTopicResult(Structure):
    topic: string = ""
    partitions: list[EpochEndOffset] = []


@message(key=23, versions=(2, 4), flexible_since=4)
class OffsetForLeaderEpochResponse(Message):
    """Versions 2–4, flexible from 4.

    v1 had added the epoch that the end belongs to, since the one asked about may be unknown here (KIP-279); v2 adds the
    throttle time.
    """

    throttle_time_ms: i32 = 0
    topics: list[OffsetForLeaderTopicResult] = []

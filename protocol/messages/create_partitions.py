"""CreatePartitions (API key 37): an admin client adds partitions to topics (KIP-195).

Any broker accepts it and forwards it to the controller. Partitions cannot be removed.
"""

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, message, string


class CreatePartitionsAssignment(Structure):
    broker_ids: list[i32] = []  # the replicas, the preferred leader first


class CreatePartitionsTopic(Structure):
    name: string = ""
    count: i32 = 0  # the new total, not the number of new ones
    # One for each new partition, in order; None: the broker chooses.
    assignments: list[CreatePartitionsAssignment] | None = []


@message(key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest(Message):
    """Versions 0–3, flexible from 2.

    With v1 and v3 the client declares what it supports: waiting for the throttle time itself (KIP-219),
    THROTTLING_QUOTA_EXCEEDED (KIP-599).
    """

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: boolean = False  # check all, create nothing


class CreatePartitionsTopicResult(Structure):
    name: string = ""
    error_code: i16 = 0  # INVALID_PARTITIONS (37) if `count` is not larger than the present count
    error_message: string | None = None


@message(key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsResponse(Message):
    """Versions 0–3, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219). v3 may return THROTTLING_QUOTA_EXCEEDED (89)
    (KIP-599).
    """

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []

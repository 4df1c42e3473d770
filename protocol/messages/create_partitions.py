"""CreatePartitions (API key 37)."""

from protocol.schema import Message, Structure, boolean, i16, i32, message, string


class CreatePartitionsAssignment(Structure):
    broker_ids: list[i32] = []


class CreatePartitionsTopic(Structure):
    name: string = ""
    count: i32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


@message(key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsRequest(Message):
    """CreatePartitionsRequest, versions 0–3, flexible from 2."""

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: i32 = 0
    validate_only: boolean = False


class CreatePartitionsTopicResult(Structure):
    name: string = ""
    error_code: i16 = 0
    error_message: string | None = None


@message(key=37, versions=(0, 3), flexible_since=2)
class CreatePartitionsResponse(Message):
    """CreatePartitionsResponse, versions 0–3, flexible from 2."""

    throttle_time_ms: i32 = 0
    results: list[CreatePartitionsTopicResult] = []

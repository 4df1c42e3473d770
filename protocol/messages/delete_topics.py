"""DeleteTopics (API key 20)."""

from typing import Annotated

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    i16,
    i32,
    ignorable,
    message,
    nullable,
    since,
    string,
    until,
    uuid,
)


class DeleteTopicState(Structure):
    name: Annotated[string | None, since(6)] = None
    topic_id: Annotated[uuid, since(6)] = ZERO_UUID


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest(Message):
    """DeleteTopicsRequest, versions 1–6, flexible from 4."""

    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[string], until(5), ignorable] = []
    timeout_ms: i32 = 0


class DeletableTopicResult(Structure):
    name: Annotated[string | None, nullable(6)] = ""
    topic_id: Annotated[uuid, since(6), ignorable] = ZERO_UUID
    error_code: i16 = 0
    error_message: Annotated[string | None, since(5), ignorable] = None


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse(Message):
    """DeleteTopicsResponse, versions 1–6, flexible from 4."""

    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []

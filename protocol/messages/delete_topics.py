"""DeleteTopics (API key 20): an admin client deletes topics with their records (KIP-4).

Any broker takes it and passes it on to the controller.
"""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
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
    """By name or, with `name` None, by id; both at once is INVALID_REQUEST (42)."""

    name: Annotated[string | None, since(6)] = None
    topic_id: Annotated[uuid, since(6)] = ZERO_UUID


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest(Message):
    """Versions 1–6, flexible from 4.

    v0 and v1–3 share their layout; Kafka 4.0 dropped v0 (KIP-896). v6 replaces the list of names by one of names or ids
    (KIP-516), by which a topic created again meanwhile is safe.
    """

    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[string], until(5), ignorable] = []
    timeout_ms: i32 = 0  # how long to wait until the topics are gone


class DeletableTopicResult(Structure):
    name: Annotated[string | None, nullable(6)] = ""  # None for an unknown id, and where the client may not see it
    topic_id: Annotated[uuid, since(6), ignorable] = ZERO_UUID
    error_code: i16 = 0
    error_message: Annotated[string | None, since(5), ignorable] = None


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse(Message):
    """Versions 1–6, flexible from 4.

    v1 adds the throttle time (KIP-124), which from v2 on the client waits out by itself (KIP-219). From v3 a broker
    with `delete.topic.enable=false` says TOPIC_DELETION_DISABLED (73) where it used to say INVALID_REQUEST (KIP-322).
    v5 adds the error text and THROTTLING_QUOTA_EXCEEDED (KIP-599). v6 adds the id and UNKNOWN_TOPIC_ID (KIP-516).
    """

    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []

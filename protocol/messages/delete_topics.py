"""DeleteTopics (API key 20): an admin client deletes topics with their records (KIP-4).

Any broker accepts it and forwards it to the controller.
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
    """By name or, with `name` None, by id; both are INVALID_REQUEST (42)."""

    name: Annotated[string | None, since(6)] = None
    topic_id: Annotated[uuid, since(6)] = ZERO_UUID


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsRequest(Message):
    """Versions 1–6, flexible from 4.

    v0–3 have the same layout; Kafka 4.0 dropped v0 (KIP-896). v6 replaces the list of names by one of names or ids
    (KIP-516). A request by id does not delete a topic that was created again under the same name.
    """

    topics: Annotated[list[DeleteTopicState], since(6)] = []
    topic_names: Annotated[list[string], until(5), ignorable] = []
    timeout_ms: i32 = 0  # the longest wait until the topics are deleted


class DeletableTopicResult(Structure):
    name: Annotated[string | None, nullable(6)] = ""  # None for an unknown id, and if the client may not see it
    topic_id: Annotated[uuid, since(6), ignorable] = ZERO_UUID
    error_code: i16 = 0
    error_message: Annotated[string | None, since(5), ignorable] = None


@message(key=20, versions=(1, 6), flexible_since=4)
class DeleteTopicsResponse(Message):
    """Versions 1–6, flexible from 4.

    v1 adds the throttle time (KIP-124), for which the client itself waits from v2 on (KIP-219). From v3 a broker with
    `delete.topic.enable=false` returns TOPIC_DELETION_DISABLED (73) instead of INVALID_REQUEST (KIP-322). v5 adds the
    error text and THROTTLING_QUOTA_EXCEEDED (KIP-599). v6 adds the id and UNKNOWN_TOPIC_ID (KIP-516).
    """

    throttle_time_ms: i32 = 0
    responses: list[DeletableTopicResult] = []

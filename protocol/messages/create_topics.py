"""CreateTopics (API key 19): an admin client creates topics, with partitions, configs and replicas (KIP-4).

Any broker accepts it and forwards it to the controller. Each topic succeeds or fails on its own.
"""

from typing import Annotated

from odradek.protocol.schema import (
    ZERO_UUID,
    Message,
    Structure,
    boolean,
    i8,
    i16,
    i32,
    ignorable,
    message,
    since,
    string,
    tag,
    uuid,
)


class CreatableReplicaAssignment(Structure):
    partition_index: i32 = 0
    broker_ids: list[i32] = []  # the replicas, the preferred leader first


class CreatableTopicConfig(Structure):
    name: string = ""
    value: string | None = ""


class CreatableTopic(Structure):
    name: string = ""
    num_partitions: i32 = 0  # -1 for `num.partitions`, and with manual assignments
    replication_factor: i16 = 0  # -1 for `default.replication.factor`, and with manual assignments
    # Every partition from 0 to n-1 once; empty: the broker chooses.
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@message(key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest(Message):
    """Versions 2–7, flexible from 5.

    Kafka 4.0 dropped v0 and v1 (KIP-896); v1 had added `validate_only`. From v4 on, without an assignment, both counts
    may be -1 for the broker's defaults (KIP-464). v3, v6 and v7 change only the response: the client itself waits for
    the throttle time (KIP-219), THROTTLING_QUOTA_EXCEEDED (KIP-599), the topic's id (KIP-516).
    """

    topics: list[CreatableTopic] = []
    timeout_ms: i32 = 60000  # the longest wait for the creation
    validate_only: boolean = False  # check all, create nothing


class CreatableTopicConfigs(Structure):
    """A config of the new topic; defaults are included."""

    name: Annotated[string, since(5)] = ""
    value: Annotated[string | None, since(5)] = ""  # None when sensitive
    read_only: Annotated[boolean, since(5)] = False
    config_source: Annotated[i8, since(5), ignorable] = -1  # as in DescribeConfigs
    is_sensitive: Annotated[boolean, since(5)] = False


class CreatableTopicResult(Structure):
    name: string = ""
    topic_id: Annotated[uuid, since(7), ignorable] = ZERO_UUID
    error_code: i16 = 0  # TOPIC_ALREADY_EXISTS (36), INVALID_TOPIC_EXCEPTION (17), INVALID_PARTITIONS (37), …
    error_message: string | None = ""
    # TOPIC_AUTHORIZATION_FAILED (29) if `configs` is None because the client may not see them.
    topic_config_error_code: Annotated[i16, since(5), tag(0), ignorable] = 0
    num_partitions: Annotated[i32, since(5), ignorable] = -1  # -1 unknown
    replication_factor: Annotated[i16, since(5), ignorable] = -1  # -1 unknown
    # None when the client may not see them.
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5), ignorable] = []


@message(key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsResponse(Message):
    """Versions 2–7, flexible from 5.

    v1 added error texts, v2 the throttle time (KIP-124), for which the client itself waits from v3 on (KIP-219). v5
    adds the partitions, replicas and configs of the new topic (KIP-525). v6 may return THROTTLING_QUOTA_EXCEEDED (89)
    if topics are created too fast (KIP-599). v7 adds the topic id (KIP-516).
    """

    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult] = []

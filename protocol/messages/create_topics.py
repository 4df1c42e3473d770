"""CreateTopics (API key 19)."""

from typing import Annotated

from protocol.schema import (
    Message,
    Structure,
    ZERO_UUID,
    boolean,
    i16,
    i32,
    i8,
    ignorable,
    message,
    since,
    string,
    tag,
    uuid,
)


class CreatableReplicaAssignment(Structure):
    partition_index: i32 = 0
    broker_ids: list[i32] = []


class CreatableTopicConfig(Structure):
    name: string = ""
    value: string | None = ""


class CreatableTopic(Structure):
    name: string = ""
    num_partitions: i32 = 0
    replication_factor: i16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


@message(key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsRequest(Message):
    """CreateTopicsRequest, versions 2–7, flexible from 5."""

    topics: list[CreatableTopic] = []
    timeout_ms: i32 = 60000
    validate_only: boolean = False


class CreatableTopicConfigs(Structure):
    name: Annotated[string, since(5)] = ""
    value: Annotated[string | None, since(5)] = ""
    read_only: Annotated[boolean, since(5)] = False
    config_source: Annotated[i8, since(5), ignorable] = -1
    is_sensitive: Annotated[boolean, since(5)] = False


class CreatableTopicResult(Structure):
    name: string = ""
    topic_id: Annotated[uuid, since(7), ignorable] = ZERO_UUID
    error_code: i16 = 0
    error_message: string | None = ""
    topic_config_error_code: Annotated[i16, since(5), tag(0), ignorable] = 0
    num_partitions: Annotated[i32, since(5), ignorable] = -1
    replication_factor: Annotated[i16, since(5), ignorable] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, since(5), ignorable] = []


@message(key=19, versions=(2, 7), flexible_since=5)
class CreateTopicsResponse(Message):
    """CreateTopicsResponse, versions 2–7, flexible from 5."""

    throttle_time_ms: i32 = 0
    topics: list[CreatableTopicResult] = []

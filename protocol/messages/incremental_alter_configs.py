"""IncrementalAlterConfigs (API key 44): an admin client changes single configs of a resource (KIP-339)."""

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, message, string


class AlterableConfig(Structure):
    name: string = ""
    config_operation: i8 = 0  # 0 set, 1 delete (back to the default), 2 append to a list, 3 subtract from a list
    value: string | None = ""  # None with delete


class AlterConfigsResource(Structure):
    resource_type: i8 = 0  # 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    resource_name: string = ""  # see DescribeConfigs
    configs: list[AlterableConfig] = []


@message(key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsRequest(Message):
    """Versions 0–1, flexible from 1."""

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False  # check all, change nothing


class AlterConfigsResourceResponse(Structure):
    error_code: i16 = 0  # INVALID_CONFIG (40), UNKNOWN_TOPIC_OR_PARTITION (3), …
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""


@message(key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsResponse(Message):
    """Versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []

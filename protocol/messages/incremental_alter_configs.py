"""IncrementalAlterConfigs (API key 44)."""

from protocol.schema import Message, Structure, boolean, i16, i32, i8, message, string


class AlterableConfig(Structure):
    name: string = ""
    config_operation: i8 = 0
    value: string | None = ""


class AlterConfigsResource(Structure):
    resource_type: i8 = 0
    resource_name: string = ""
    configs: list[AlterableConfig] = []


@message(key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsRequest(Message):
    """IncrementalAlterConfigsRequest, versions 0–1, flexible from 1."""

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False


class AlterConfigsResourceResponse(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""


@message(key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsResponse(Message):
    """IncrementalAlterConfigsResponse, versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []

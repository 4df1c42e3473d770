"""AlterConfigs (API key 33)."""

from protocol.schema import Message, Structure, boolean, i16, i32, i8, message, string


class AlterableConfig(Structure):
    name: string = ""
    value: string | None = ""


class AlterConfigsResource(Structure):
    resource_type: i8 = 0
    resource_name: string = ""
    configs: list[AlterableConfig] = []


@message(key=33, versions=(0, 2), flexible_since=2)
class AlterConfigsRequest(Message):
    """AlterConfigsRequest, versions 0–2, flexible from 2."""

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False


class AlterConfigsResourceResponse(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""


@message(key=33, versions=(0, 2), flexible_since=2)
class AlterConfigsResponse(Message):
    """AlterConfigsResponse, versions 0–2, flexible from 2."""

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []

"""ListConfigResources (API key 74)."""

from typing import Annotated

from protocol.schema import Message, Structure, i16, i32, i8, ignorable, message, since, string


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest(Message):
    """ListConfigResourcesRequest, versions 0–1, flexible."""

    resource_types: Annotated[list[i8], since(1)] = []


class ConfigResource(Structure):
    resource_name: string = ""
    resource_type: Annotated[i8, since(1), ignorable] = 16


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse(Message):
    """ListConfigResourcesResponse, versions 0–1, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = []

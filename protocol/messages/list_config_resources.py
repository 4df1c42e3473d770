"""ListConfigResources (API key 74): an admin client asks which resources have configs.

It began as ListClientMetricsResources (KIP-714) and was opened to other types later (KIP-1142).
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i8, i16, i32, ignorable, message, since, string


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest(Message):
    """Versions 0–1, flexible.

    v0 asks for client metrics alone. v1 names types (KIP-1142).
    """

    resource_types: Annotated[list[i8], since(1)] = []  # as in DescribeConfigs; empty for all


class ConfigResource(Structure):
    resource_name: string = ""
    resource_type: Annotated[i8, since(1), ignorable] = 16  # 16, client metrics, is all that v0 knew


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse(Message):
    """Versions 0–1, flexible; v1 tells the type of each (KIP-1142)."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = []

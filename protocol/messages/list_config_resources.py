"""ListConfigResources (API key 74): an admin client lists the resources that have configs.

It was called ListClientMetricsResources (KIP-714) before it listed other types (KIP-1142).
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i8, i16, i32, ignorable, message, since, string


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesRequest(Message):
    """Versions 0–1, flexible.

    v0 lists client metrics only. v1 names types (KIP-1142).
    """

    resource_types: Annotated[list[i8], since(1)] = []  # as in DescribeConfigs; empty for all


class ConfigResource(Structure):
    resource_name: string = ""
    resource_type: Annotated[i8, since(1), ignorable] = 16  # 16, client metrics, the only type of v0


@message(key=74, versions=(0, 1), flexible_since=0)
class ListConfigResourcesResponse(Message):
    """Versions 0–1, flexible; v1 adds the type of each (KIP-1142)."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    config_resources: list[ConfigResource] = []

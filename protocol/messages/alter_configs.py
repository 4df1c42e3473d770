"""AlterConfigs (API key 33): an admin client replaces all configs of a resource (KIP-133).

A config that the request leaves out is reset to its default, so two writers undo each other's changes.
IncrementalAlterConfigs replaced it (KIP-339).
"""

from odradek.protocol.schema import Message, Structure, boolean, i8, i16, i32, message, string


class AlterableConfig(Structure):
    name: string = ""
    value: string | None = ""  # None resets to the default


class AlterConfigsResource(Structure):
    resource_type: i8 = 0  # 2 topic, 4 broker, …; see DescribeConfigs
    resource_name: string = ""  # topic, or a broker's id in digits; empty for all brokers
    configs: list[AlterableConfig] = []


@message(key=33, versions=(0, 2), flexible_since=2)
class AlterConfigsRequest(Message):
    """Versions 0–2, flexible from 2.

    With v1 a client declares that it waits for the throttle time itself (KIP-219).
    """

    resources: list[AlterConfigsResource] = []
    validate_only: boolean = False  # check all, change nothing


class AlterConfigsResourceResponse(Structure):
    error_code: i16 = 0  # INVALID_CONFIG (40), UNKNOWN_TOPIC_OR_PARTITION (3), …
    error_message: string | None = ""
    resource_type: i8 = 0
    resource_name: string = ""


@message(key=33, versions=(0, 2), flexible_since=2)
class AlterConfigsResponse(Message):
    """Versions 0–2, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219).
    """

    throttle_time_ms: i32 = 0
    responses: list[AlterConfigsResourceResponse] = []

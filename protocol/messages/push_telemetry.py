"""PushTelemetry (API key 72)."""

from protocol.schema import Message, ZERO_UUID, binary, boolean, i16, i32, i8, message, uuid


@message(key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryRequest(Message):
    """PushTelemetryRequest, version 0, flexible."""

    client_instance_id: uuid = ZERO_UUID
    subscription_id: i32 = 0
    terminating: boolean = False
    compression_type: i8 = 0
    metrics: binary = b""


@message(key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryResponse(Message):
    """PushTelemetryResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0

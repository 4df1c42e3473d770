"""PushTelemetry (API key 72): a client sends its metrics to the broker, for a plug-in there (KIP-714)."""

from odradek.protocol.schema import ZERO_UUID, Message, binary, boolean, i8, i16, i32, message, uuid


@message(key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryRequest(Message):
    """Version 0, flexible."""

    client_instance_id: uuid = ZERO_UUID
    subscription_id: i32 = 0
    terminating: boolean = False  # the last push, which may be early
    compression_type: i8 = 0  # codec as in record batches
    metrics: binary = b""  # OpenTelemetry MetricsData v1 as protobuf, compressed


@message(key=72, versions=(0, 0), flexible_since=0)
class PushTelemetryResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # UNKNOWN_SUBSCRIPTION_ID (117): read the subscription again; TELEMETRY_TOO_LARGE (118), …

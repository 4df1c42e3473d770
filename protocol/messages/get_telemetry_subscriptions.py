"""GetTelemetrySubscriptions (API key 71)."""

from protocol.schema import Message, ZERO_UUID, boolean, i16, i32, i8, message, string, uuid


@message(key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsRequest(Message):
    """GetTelemetrySubscriptionsRequest, version 0, flexible."""

    client_instance_id: uuid = ZERO_UUID


@message(key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsResponse(Message):
    """GetTelemetrySubscriptionsResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    client_instance_id: uuid = ZERO_UUID
    subscription_id: i32 = 0
    accepted_compression_types: list[i8] = []
    push_interval_ms: i32 = 0
    telemetry_max_bytes: i32 = 0
    delta_temporality: boolean = False
    requested_metrics: list[string] = []

"""GetTelemetrySubscriptions (API key 71): a client reads which of its metrics the broker collects (KIP-714)."""

from odradek.protocol.schema import ZERO_UUID, Message, boolean, i8, i16, i32, message, string, uuid


@message(key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsRequest(Message):
    """Version 0, flexible."""

    client_instance_id: uuid = ZERO_UUID  # zero the first time


@message(key=71, versions=(0, 0), flexible_since=0)
class GetTelemetrySubscriptionsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    client_instance_id: uuid = ZERO_UUID  # a new one if the request had none, else zero
    subscription_id: i32 = 0  # to be sent with every push; it changes with the subscription
    accepted_compression_types: list[i8] = []  # codecs as in record batches, by preference
    push_interval_ms: i32 = 0
    telemetry_max_bytes: i32 = 0
    delta_temporality: boolean = False  # True: counters are differences; False: totals
    requested_metrics: list[string] = []  # prefixes of names; empty for none, one empty string for all

"""DescribeClientQuotas (API key 48): an admin client lists the quotas of users, client ids, addresses (KIP-546)."""

from odradek.protocol.schema import Message, Structure, boolean, f64, i8, i16, i32, message, string


class ComponentData(Structure):
    entity_type: string = ""  # `user`, `client-id` or `ip`
    match_type: i8 = 0  # 0 this name, 1 the default, 2 any that is set
    match: string | None = ""  # the name; None with 1 and 2


@message(key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest(Message):
    """Versions 0–1, flexible from 1."""

    components: list[ComponentData] = []
    strict: boolean = False  # leave out entities with further types than those named


class EntityData(Structure):
    entity_type: string = ""
    entity_name: string | None = ""  # None for the default


class ValueData(Structure):
    key: string = ""  # `producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, …
    value: f64 = 0.0


class EntryData(Structure):
    entity: list[EntityData] = []  # one part for each type: a quota may be for a user with a client id
    values: list[ValueData] = []


@message(key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasResponse(Message):
    """Versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    entries: list[EntryData] | None = []  # None with an error

"""DescribeClientQuotas (API key 48)."""

from protocol.schema import Message, Structure, boolean, f64, i16, i32, i8, message, string


class ComponentData(Structure):
    entity_type: string = ""
    match_type: i8 = 0
    match: string | None = ""


@message(key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasRequest(Message):
    """DescribeClientQuotasRequest, versions 0–1, flexible from 1."""

    components: list[ComponentData] = []
    strict: boolean = False


class EntityData(Structure):
    entity_type: string = ""
    entity_name: string | None = ""


class ValueData(Structure):
    key: string = ""
    value: f64 = 0.0


class EntryData(Structure):
    entity: list[EntityData] = []
    values: list[ValueData] = []


@message(key=48, versions=(0, 1), flexible_since=1)
class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotasResponse, versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    error_message: string | None = ""
    entries: list[EntryData] | None = []

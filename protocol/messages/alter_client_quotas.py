"""AlterClientQuotas (API key 49)."""

from protocol.schema import Message, Structure, boolean, f64, i16, i32, message, string


class EntityData(Structure):
    entity_type: string = ""
    entity_name: string | None = ""


class OpData(Structure):
    key: string = ""
    value: f64 = 0.0
    remove: boolean = False


class RequestEntryData(Structure):
    entity: list[EntityData] = []
    ops: list[OpData] = []


@message(key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasRequest(Message):
    """AlterClientQuotasRequest, versions 0–1, flexible from 1."""

    entries: list[RequestEntryData] = []
    validate_only: boolean = False


class ResponseEntryData(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    entity: list[EntityData] = []


@message(key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasResponse(Message):
    """AlterClientQuotasResponse, versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    entries: list[ResponseEntryData] = []

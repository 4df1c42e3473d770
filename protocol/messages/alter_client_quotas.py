"""AlterClientQuotas (API key 49): an admin client changes the quotas of users, client ids, addresses (KIP-546)."""

from odradek.protocol.schema import Message, Structure, boolean, f64, i16, i32, message, string


class EntityData(Structure):
    entity_type: string = ""  # `user`, `client-id` or `ip`
    entity_name: string | None = ""  # None for the default


class OpData(Structure):
    key: string = ""  # `producer_byte_rate`, `consumer_byte_rate`, `request_percentage`, …
    value: f64 = 0.0
    remove: boolean = False  # if true, `value` is ignored


class RequestEntryData(Structure):
    entity: list[EntityData] = []  # one part for each type: a quota may be for a user with a client id
    ops: list[OpData] = []


@message(key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasRequest(Message):
    """Versions 0–1, flexible from 1."""

    entries: list[RequestEntryData] = []
    validate_only: boolean = False  # check all, change nothing


class ResponseEntryData(Structure):
    error_code: i16 = 0
    error_message: string | None = ""
    entity: list[EntityData] = []


@message(key=49, versions=(0, 1), flexible_since=1)
class AlterClientQuotasResponse(Message):
    """Versions 0–1, flexible from 1."""

    throttle_time_ms: i32 = 0
    entries: list[ResponseEntryData] = []

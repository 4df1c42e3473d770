"""UnregisterBroker (API key 64): an admin client removes the registration of a removed broker (KIP-631)."""

from odradek.protocol.schema import Message, i16, i32, message, string


@message(key=64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerRequest(Message):
    """Version 0, flexible."""

    broker_id: i32 = 0


@message(key=64, versions=(0, 0), flexible_since=0)
class UnregisterBrokerResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0  # BROKER_ID_NOT_REGISTERED (102), …
    error_message: string | None = ""

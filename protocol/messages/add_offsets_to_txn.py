"""AddOffsetsToTxn (API key 25)."""

from protocol.schema import Message, i16, i32, i64, message, string


@message(key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest(Message):
    """AddOffsetsToTxnRequest, versions 0–4, flexible from 3."""

    transactional_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: string = ""


@message(key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse(Message):
    """AddOffsetsToTxnResponse, versions 0–4, flexible from 3."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0

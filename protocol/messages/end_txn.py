"""EndTxn (API key 26)."""

from typing import Annotated

from protocol.schema import Message, boolean, i16, i32, i64, ignorable, message, since, string


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest(Message):
    """EndTxnRequest, versions 0–5, flexible from 3."""

    transactional_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: boolean = False


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnResponse(Message):
    """EndTxnResponse, versions 0–5, flexible from 3."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: Annotated[i64, since(5), ignorable] = -1
    producer_epoch: Annotated[i16, since(5), ignorable] = -1

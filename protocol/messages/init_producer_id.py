"""InitProducerId (API key 22)."""

from typing import Annotated

from protocol.schema import Message, boolean, i16, i32, i64, message, since, string


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest(Message):
    """InitProducerIdRequest, versions 0–6, flexible from 2."""

    transactional_id: string | None = ""
    transaction_timeout_ms: i32 = 0
    producer_id: Annotated[i64, since(3)] = -1
    producer_epoch: Annotated[i16, since(3)] = -1
    enable2_pc: Annotated[boolean, since(6)] = False
    keep_prepared_txn: Annotated[boolean, since(6)] = False


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdResponse(Message):
    """InitProducerIdResponse, versions 0–6, flexible from 2."""

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: Annotated[i64, since(6)] = -1
    ongoing_txn_producer_epoch: Annotated[i16, since(6)] = -1

"""InitProducerId (API key 22): an idempotent or transactional producer obtains its producer id and epoch (KIP-98).

Without a transactional id any broker returns a new id with epoch 0. With one the transaction coordinator returns the
same id as before and a higher epoch, aborts an open transaction, and fences older producers of that transactional id.
"""

from typing import Annotated

from odradek.protocol.schema import Message, boolean, i16, i32, i64, message, since, string


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest(Message):
    """Versions 0–6, flexible from 2.

    v3 adds the producer's present id and epoch, so that it can continue with a higher epoch after an error (KIP-360).
    v6 is for two-phase commit: it can keep a prepared transaction open (KIP-939). With v1, v4 and v5 the producer
    declares what it supports: waiting for the throttle time itself (KIP-219), PRODUCER_FENCED (KIP-588),
    TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: string | None = ""  # None for idempotence alone
    transaction_timeout_ms: i32 = 0  # after this time the coordinator aborts an open transaction
    producer_id: Annotated[i64, since(3)] = -1  # the present one; -1 for none
    producer_epoch: Annotated[i16, since(3)] = -1  # the present one; -1 for none
    # The timeout above does not apply: only the owner ends the transaction.
    enable2_pc: Annotated[boolean, since(6)] = False
    keep_prepared_txn: Annotated[boolean, since(6)] = False  # do not abort the open transaction


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdResponse(Message):
    """Versions 0–6, flexible from 2.

    From v1 on the client itself waits for the throttle time (KIP-219). From v4 on a fenced producer gets
    PRODUCER_FENCED (90), below v4 INVALID_PRODUCER_EPOCH (47), which may also mean an error that the producer can
    recover from (KIP-588). v5 may return TRANSACTION_ABORTABLE (KIP-890). v6 adds the transaction that was kept open
    (KIP-939).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: Annotated[i64, since(6)] = -1  # -1 without one
    ongoing_txn_producer_epoch: Annotated[i16, since(6)] = -1  # -1 without one

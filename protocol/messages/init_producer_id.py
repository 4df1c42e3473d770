"""InitProducerId (API key 22): an idempotent or transactional producer obtains its producer id and epoch (KIP-98).

Without a transactional id any broker answers: a fresh id, epoch 0. With one the transaction coordinator does: the id
stays, the epoch is raised, whatever transaction was open is aborted, and older producers of that transactional id are
fenced.
"""

from typing import Annotated

from odradek.protocol.schema import Message, boolean, i16, i32, i64, message, since, string


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdRequest(Message):
    """Versions 0–6, flexible from 2.

    v3 lets a producer name the id and epoch it has, so that it can have its epoch raised and go on after an error
    instead of failing (KIP-360). v6 is for two-phase commit: it can leave the open transaction as it was prepared
    (KIP-939). v1, v4 and v5 say what the producer understands: waiting out a throttle (KIP-219), PRODUCER_FENCED
    (KIP-588), TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: string | None = ""  # None for idempotence alone
    transaction_timeout_ms: i32 = 0  # when the coordinator aborts an open transaction by itself
    producer_id: Annotated[i64, since(3)] = -1  # the one it has; -1 for none
    producer_epoch: Annotated[i16, since(3)] = -1  # the one it has; -1 for none
    # The timeout above does not apply: the transaction is left to its owner.
    enable2_pc: Annotated[boolean, since(6)] = False
    keep_prepared_txn: Annotated[boolean, since(6)] = False  # do not abort what is open


@message(key=22, versions=(0, 6), flexible_since=2)
class InitProducerIdResponse(Message):
    """Versions 0–6, flexible from 2.

    From v1 on the client waits out a throttle by itself (KIP-219). From v4 a fenced producer is told PRODUCER_FENCED
    (90), below that INVALID_PRODUCER_EPOCH (47), which also stands for curable cases (KIP-588). v5 may say
    TRANSACTION_ABORTABLE (KIP-890). v6 tells which transaction was kept open (KIP-939).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    producer_id: i64 = -1
    producer_epoch: i16 = 0
    ongoing_txn_producer_id: Annotated[i64, since(6)] = -1  # -1 without one
    ongoing_txn_producer_epoch: Annotated[i16, since(6)] = -1  # -1 without one

"""AddOffsetsToTxn (API key 25): a producer announces that a group's offsets will be part of its transaction (KIP-98).

The coordinator adds the group's partition of `__consumer_offsets` to the transaction; TxnOffsetCommit to the group's
coordinator follows. Producers of KIP-890, part 2, do not send it.
"""

from odradek.protocol.schema import Message, i16, i32, i64, message, string


@message(key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnRequest(Message):
    """Versions 0–4, flexible from 3.

    The fields never changed. With v1, v2 and v4 the client declares what it supports: waiting for the throttle time
    itself (KIP-219), PRODUCER_FENCED (KIP-588), TRANSACTION_ABORTABLE (KIP-890).
    """

    transactional_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    group_id: string = ""


@message(key=25, versions=(0, 4), flexible_since=3)
class AddOffsetsToTxnResponse(Message):
    """Versions 0–4, flexible from 3.

    From v1 on the client itself waits for the throttle time (KIP-219). v2 returns PRODUCER_FENCED (90) to a fenced
    producer (KIP-588), v4 may return TRANSACTION_ABORTABLE (KIP-890).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0

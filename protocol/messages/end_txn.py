"""EndTxn (API key 26): a producer makes its transaction coordinator commit or abort the transaction (KIP-98).

The coordinator responds when the decision is in its log, and writes the markers afterwards.
"""

from typing import Annotated

from odradek.protocol.schema import Message, boolean, i16, i32, i64, ignorable, message, since, string


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest(Message):
    """Versions 0–5, flexible from 3.

    The fields never changed. With v1, v2 and v4 the client declares what it supports: waiting for the throttle time
    itself (KIP-219), PRODUCER_FENCED (KIP-588), TRANSACTION_ABORTABLE (KIP-890). v5 requests a new epoch with each
    transaction, so that a late record of one transaction cannot become part of the next (KIP-890, part 2).
    """

    transactional_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: boolean = False  # False aborts


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnResponse(Message):
    """Versions 0–5, flexible from 3.

    From v1 on the client itself waits for the throttle time (KIP-219). v2 returns PRODUCER_FENCED (90) to a fenced
    producer (KIP-588), v4 may return TRANSACTION_ABORTABLE (KIP-890). v5 adds the id and epoch for the next transaction
    (KIP-890, part 2).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    # A new one if the epochs of the old one are used up; -1 with an error.
    producer_id: Annotated[i64, since(5), ignorable] = -1
    producer_epoch: Annotated[i16, since(5), ignorable] = -1

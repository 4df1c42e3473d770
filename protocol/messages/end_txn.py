"""EndTxn (API key 26): a producer has its transaction coordinator commit or abort the transaction (KIP-98).

The answer comes when the decision is on the coordinator's log; the markers follow.
"""

from typing import Annotated

from odradek.protocol.schema import Message, boolean, i16, i32, i64, ignorable, message, since, string


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnRequest(Message):
    """Versions 0–5, flexible from 3.

    The fields never changed. v1, v2 and v4 say what the client understands: waiting out a throttle (KIP-219),
    PRODUCER_FENCED (KIP-588), TRANSACTION_ABORTABLE (KIP-890). v5 asks for a new epoch with each transaction, so that a
    late record of one cannot slip into the next (KIP-890, part 2).
    """

    transactional_id: string = ""
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    committed: boolean = False  # False aborts


@message(key=26, versions=(0, 5), flexible_since=3)
class EndTxnResponse(Message):
    """Versions 0–5, flexible from 3.

    From v1 on the client waits out a throttle by itself (KIP-219). v2 says PRODUCER_FENCED (90) to a fenced producer
    (KIP-588), v4 may say TRANSACTION_ABORTABLE (KIP-890). v5 tells the id and epoch to go on with (KIP-890, part 2).
    """

    throttle_time_ms: i32 = 0
    error_code: i16 = 0
    # Another one when the epochs of the old were used up; -1 with an error.
    producer_id: Annotated[i64, since(5), ignorable] = -1
    producer_epoch: Annotated[i16, since(5), ignorable] = -1

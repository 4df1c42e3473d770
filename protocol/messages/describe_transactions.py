"""DescribeTransactions (API key 65): an admin client reads the state of transactional ids (KIP-664).

Their coordinators receive it.
"""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, string


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest(Message):
    """Version 0, flexible."""

    transactional_ids: list[string] = []  # an empty list requests none


class TopicData(Structure):
    topic: string = ""
    partitions: list[i32] = []


class TransactionState(Structure):
    error_code: i16 = 0
    transactional_id: string = ""
    transaction_state: string = ""  # Empty, Ongoing, PrepareCommit, CompleteCommit, PrepareAbort, CompleteAbort, …
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0  # -1 without an open transaction
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = []  # while markers are written, only the partitions without one


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []

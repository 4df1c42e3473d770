"""DescribeTransactions (API key 65): an admin client asks coordinators how transactional ids stand (KIP-664)."""

from odradek.protocol.schema import Message, Structure, i16, i32, i64, message, string


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest(Message):
    """Version 0, flexible."""

    transactional_ids: list[string] = []  # an empty list asks for none


class TopicData(Structure):
    topic: string = ""
    partitions: list[i32] = []


class TransactionState(Structure):
    error_code: i16 = 0
    transactional_id: string = ""
    transaction_state: string = ""  # Empty, Ongoing, PrepareCommit, CompleteCommit, PrepareAbort, CompleteAbort, …
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0  # -1 without an open one
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = []  # while a marker is being written, only the partitions that lack it


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsResponse(Message):
    """Version 0, flexible."""

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []

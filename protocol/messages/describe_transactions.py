"""DescribeTransactions (API key 65)."""

from protocol.schema import Message, Structure, i16, i32, i64, message, string


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsRequest(Message):
    """DescribeTransactionsRequest, version 0, flexible."""

    transactional_ids: list[string] = []


class TopicData(Structure):
    topic: string = ""
    partitions: list[i32] = []


class TransactionState(Structure):
    error_code: i16 = 0
    transactional_id: string = ""
    transaction_state: string = ""
    transaction_timeout_ms: i32 = 0
    transaction_start_time_ms: i64 = 0
    producer_id: i64 = 0
    producer_epoch: i16 = 0
    topics: list[TopicData] = []


@message(key=65, versions=(0, 0), flexible_since=0)
class DescribeTransactionsResponse(Message):
    """DescribeTransactionsResponse, version 0, flexible."""

    throttle_time_ms: i32 = 0
    transaction_states: list[TransactionState] = []

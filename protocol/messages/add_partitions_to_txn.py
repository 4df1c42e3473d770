"""AddPartitionsToTxn (API key 24): a producer names the partitions that it will write to its transaction coordinator.

The coordinator must store them before their first record, because it writes the markers to them at the end (KIP-98).
Since KIP-890 brokers send it, too: before the leader of a partition appends, it has the coordinator verify or add the
partition. Newer producers rely on that and do not send it.
"""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string, until


class AddPartitionsToTxnTopic(Structure):
    name: string = ""
    partitions: list[i32] = []


class AddPartitionsToTxnTransaction(Structure):
    transactional_id: Annotated[string, since(4)] = ""
    producer_id: Annotated[i64, since(4)] = 0
    producer_epoch: Annotated[i16, since(4)] = 0
    # Check whether the partitions are in the transaction, without adding them.
    verify_only: Annotated[boolean, since(4)] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], since(4)] = []


@message(key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest(Message):
    """Versions 0–5, flexible from 3.

    Producers send v0–3, with one transaction: all its partitions are added or none. Brokers send v4 and v5, with
    several (KIP-890). With v1, v2 and v5 the sender declares what it supports: waiting for the throttle time itself
    (KIP-219), PRODUCER_FENCED (KIP-588), TRANSACTION_ABORTABLE (KIP-890).
    """

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = []
    v3_and_below_transactional_id: Annotated[string, until(3)] = ""
    v3_and_below_producer_id: Annotated[i64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[i16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = []


class AddPartitionsToTxnPartitionResult(Structure):
    partition_index: i32 = 0
    partition_error_code: i16 = 0  # OPERATION_NOT_ATTEMPTED (55) if another partition had an error


class AddPartitionsToTxnTopicResult(Structure):
    name: string = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Structure):
    transactional_id: Annotated[string, since(4)] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], since(4)] = []


@message(key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnResponse(Message):
    """Versions 0–5, flexible from 3.

    From v1 on the client itself waits for the throttle time (KIP-219). v2 returns PRODUCER_FENCED (90) to a fenced
    producer (KIP-588). v4 answers several transactions, with an error for the request as a whole; v5 may return
    TRANSACTION_ABORTABLE (both KIP-890). In every version CONCURRENT_TRANSACTIONS (51) means that the previous
    transaction is still being completed: retry.
    """

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(4), ignorable] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []

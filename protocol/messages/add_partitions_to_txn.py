"""AddPartitionsToTxn (API key 24)."""

from typing import Annotated

from protocol.schema import Message, Structure, boolean, i16, i32, i64, ignorable, message, since, string, until


class AddPartitionsToTxnTopic(Structure):
    name: string = ""
    partitions: list[i32] = []


class AddPartitionsToTxnTransaction(Structure):
    transactional_id: Annotated[string, since(4)] = ""
    producer_id: Annotated[i64, since(4)] = 0
    producer_epoch: Annotated[i16, since(4)] = 0
    verify_only: Annotated[boolean, since(4)] = False
    topics: Annotated[list[AddPartitionsToTxnTopic], since(4)] = []


@message(key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest(Message):
    """AddPartitionsToTxnRequest, versions 0–5, flexible from 3."""

    transactions: Annotated[list[AddPartitionsToTxnTransaction], since(4)] = []
    v3_and_below_transactional_id: Annotated[string, until(3)] = ""
    v3_and_below_producer_id: Annotated[i64, until(3)] = 0
    v3_and_below_producer_epoch: Annotated[i16, until(3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], until(3)] = []


class AddPartitionsToTxnPartitionResult(Structure):
    partition_index: i32 = 0
    partition_error_code: i16 = 0


class AddPartitionsToTxnTopicResult(Structure):
    name: string = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Structure):
    transactional_id: Annotated[string, since(4)] = ""
    topic_results: Annotated[list[AddPartitionsToTxnTopicResult], since(4)] = []


@message(key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxnResponse, versions 0–5, flexible from 3."""

    throttle_time_ms: i32 = 0
    error_code: Annotated[i16, since(4), ignorable] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], since(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], until(3)] = []

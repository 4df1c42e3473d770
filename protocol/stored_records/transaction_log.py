"""The state of transactions in `__transaction_state` (record type 0): the last record of an id is valid."""

from typing import Annotated

from odradek.protocol.schema import Message, Structure, i8, i16, i32, i64, message, since, string, tag


@message(versions=(0, 0))
class TransactionLogKey(Message):
    """Record type 0."""

    transactional_id: string = ""


class PartitionsSchema(Structure):
    topic: string = ""
    partition_ids: list[i32] = []


@message(versions=(0, 1), flexible_since=1)
class TransactionLogValue(Message):
    """Versions 0–1, flexible from 1.

    v1 adds the fields of version 2 of the transaction protocol (KIP-890). The status numbers, from 0: empty, ongoing,
    prepare commit, prepare abort, complete commit, complete abort, dead, prepare epoch fence. The partitions are null
    before the first one.
    """

    producer_id: i64 = 0
    previous_producer_id: Annotated[i64, since(1), tag(0)] = -1
    next_producer_id: Annotated[i64, since(1), tag(1)] = -1
    producer_epoch: i16 = 0
    next_producer_epoch: Annotated[i16, since(1), tag(3)] = -1
    transaction_timeout_ms: i32 = 0
    transaction_status: i8 = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: i64 = 0
    transaction_start_timestamp_ms: i64 = 0
    client_transaction_version: Annotated[i16, since(1), tag(2)] = 0

"""The search for hanging transactions: open in a partition, and ended by no coordinator (KIP-664).

```
producers of the partitions ─► open transactions, old enough ─► their transactional ids, by producer id
                                                                    └─► partitions that the coordinator will still end
```
An open transaction hangs if no coordinator has its producer id, or if its coordinator does not have the partition among
those of the transaction. It may have ended between the answers of leader and coordinator. So the producers of a
partition with a candidate are described once more, and only what is still open hangs: the coordinator forgets a
partition after the marker is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import time_ns

from odradek.client.admin.arguments import TransactionFilter
from odradek.client.admin.calls import Calls
from odradek.client.admin.results import HangingTransaction, Results, TransactionDescription
from odradek.client.admin.topics import describe_topics, list_topics
from odradek.client.admin.transactions import (
    Producers,
    describe_producers,
    describe_transactions,
    list_transactions,
)
from odradek.client.errors import BrokerError, ClientError
from odradek.client.record import Partition, TopicPartition
from odradek.protocol.errors import ErrorCode

Hanging = tuple[HangingTransaction, ...]


async def find_hanging_transactions(
    calls: Calls,
    partitions: Iterable[Partition] | None,
    *,
    broker: int | None,
    older_than_ms: int,
    timeout_ms: int | None,
) -> Results[TopicPartition, Hanging]:
    if partitions is None:
        searched = await _all_partitions(calls, broker, timeout_ms)
    else:
        searched = [TopicPartition(*partition) for partition in partitions]
    described = await describe_producers(calls, searched, broker=broker, timeout_ms=timeout_ms)
    before = time_ns() // 1_000_000 - older_than_ms
    opened = {
        partition: open_producers
        for partition, producers in described.succeeded.items()
        if (open_producers := _open(producers, before if older_than_ms >= 0 else None))
    }
    ids = {one.producer_id for producers in opened.values() for one in producers}
    known = await transactions_of(calls, ids, timeout_ms=timeout_ms)
    candidates = {
        partition: hanging
        for partition, producers in opened.items()
        if (hanging := _without_coordinator(partition, producers, known))
    }
    again = await describe_producers(calls, candidates, broker=broker, timeout_ms=timeout_ms)
    results: Results[TopicPartition, Hanging] = Results()
    for partition, producers in described.items():
        later = again.get(partition, ())
        if isinstance(producers, ClientError):
            results[partition] = producers
        elif isinstance(later, ClientError):
            results[partition] = later
        else:
            still_open = {(one.producer_id, one.transaction_start_offset) for one in later}
            results[partition] = tuple(
                one
                for one in candidates.get(partition, ())
                if (one.producer.producer_id, one.producer.transaction_start_offset) in still_open
            )
    return results


async def transactions_of(
    calls: Calls, producer_ids: set[int], *, timeout_ms: int | None
) -> dict[int, TransactionDescription]:
    """The transactions that coordinators have for producer ids. Raises ClientError."""
    if not producer_ids:
        return {}
    chosen = TransactionFilter(producer_ids=sorted(producer_ids))
    listed = await list_transactions(calls, chosen, timeout_ms=timeout_ms)
    described = await describe_transactions(calls, listed, timeout_ms=timeout_ms)
    for error in described.failed.values():
        if not (isinstance(error, BrokerError) and error.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            raise error
    return {one.producer_id: one for one in described.succeeded.values()}


async def _all_partitions(calls: Calls, broker: int | None, timeout_ms: int | None) -> list[TopicPartition]:
    names = await list_topics(calls, include_internal=True, timeout_ms=timeout_ms)
    described = await describe_topics(calls, names, by_id=False, timeout_ms=timeout_ms)
    return [
        TopicPartition(topic.name, one.partition)
        for topic in described.succeeded.values()
        for one in topic.partitions
        if broker is None or broker in one.replicas
    ]


def _open(producers: Producers, before: int | None) -> Producers:
    """The producers with an open transaction whose last record is older than `before` (ms since the epoch)."""
    return tuple(
        one
        for one in producers
        if one.transaction_start_offset is not None and (before is None or one.last_timestamp < before)
    )


def _without_coordinator(
    partition: TopicPartition, producers: Producers, known: Mapping[int, TransactionDescription]
) -> Hanging:
    found = []
    for one in producers:
        described = known.get(one.producer_id)
        if described is None or partition not in described.partitions:
            found.append(HangingTransaction(partition, one, described.transactional_id if described else None))
    return tuple(found)

"""Reading of whole topics, up to the end that a consumer of committed records may reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import OffsetSpec
from odradek.client.config import IsolationLevel
from odradek.client.consumer.consumer import Consumer
from odradek.client.record import ConsumerRecord, TopicPartition

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_LOOK_MS = 20
"""The interval in which positions are compared with the ends while no record arrives: a partition may end in records
of transactions, which the consumer does not return."""
_ENDING = ("PrepareCommit", "PrepareAbort")


async def partitions_of(admin: Admin, topic: str) -> list[TopicPartition] | None:
    """Return the partitions of a topic, or None if it does not exist. Creates nothing. Raises ClientError."""
    found = (await admin.list_topics(include_internal=True)).get(topic)
    return None if found is None else [TopicPartition(topic, index) for index in range(found.partitions)]


async def read(
    consumer: Consumer, ends: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int] | None = None
) -> AsyncIterator[ConsumerRecord]:
    """Yield the records before `ends` (exclusive), from the beginning or from `starts`. Raises ClientError."""
    unread = {partition for partition, end in ends.items() if end > 0}
    consumer.assign(unread)
    for partition, start in (starts or {}).items():
        consumer.seek(partition, start)
    while unread:
        for record in await consumer.poll(_LOOK_MS):
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record
        unread = {partition for partition in unread if await consumer.position(partition) < ends[partition]}


async def read_all(consumer: Consumer, ends: Mapping[TopicPartition, int]) -> list[ConsumerRecord]:
    """Return the records before `ends` (exclusive), by partition and offset. Raises ClientError."""
    return sorted([each async for each in read(consumer, ends)], key=lambda each: (each.partition, each.offset))


async def settled_ends(admin: Admin, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int] | None:
    """Return the ends (exclusive) of what a consumer of committed records may read.

    Return None while the markers of a transaction that was ended are still written: a producer's `commit` returns
    before they are in all partitions. Raises ClientError.
    """
    ends = await _ends(admin, partitions, "read_committed")
    if ends == await _ends(admin, partitions, "read_uncommitted"):
        return ends
    if await admin.list_transactions(states=_ENDING):
        return None
    return await _ends(admin, partitions, "read_committed")


async def _ends(
    admin: Admin, partitions: Sequence[TopicPartition], isolation_level: IsolationLevel
) -> dict[TopicPartition, int]:
    found = await admin.list_offsets(dict.fromkeys(partitions, int(OffsetSpec.LATEST)), isolation_level=isolation_level)
    return {partition: each.offset for partition, each in found.values_or_raise().items()}

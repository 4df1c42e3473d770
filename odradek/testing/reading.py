"""Reading of whole topics, up to the end that a consumer of committed records may reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from odradek.client.admin.admin import Admin
from odradek.client.admin.arguments import OffsetSpec
from odradek.client.consumer.consumer import Consumer
from odradek.client.record import ConsumerRecord, TopicPartition

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


async def read_all(consumer: Consumer, partitions: Sequence[TopicPartition]) -> list[ConsumerRecord]:
    """Return all records that the consumer may read now, by partition and offset. Raises ClientError."""
    ends = await consumer.end_offsets(partitions)
    return sorted([each async for each in read(consumer, ends)], key=lambda each: (each.partition, each.offset))


async def has_ending_transactions(admin: Admin, partitions: Sequence[TopicPartition]) -> bool:
    """Return whether partitions have records of a transaction that was ended, and whose markers are still written.

    A producer's `commit` returns before its markers are in all partitions. Raises ClientError.
    """
    places = dict.fromkeys(partitions, int(OffsetSpec.LATEST))
    committed = (await admin.list_offsets(places, isolation_level="read_committed")).values_or_raise()
    ends = (await admin.list_offsets(places)).values_or_raise()
    if all(committed[partition].offset == ends[partition].offset for partition in partitions):
        return False
    return bool(await admin.list_transactions(states=_ENDING))

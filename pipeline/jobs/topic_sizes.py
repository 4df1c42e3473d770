"""How many records a topic has, as its brokers say."""

from __future__ import annotations

from odradek.client import Admin, ClientError, OffsetSpec, TopicPartition
from odradek.pipeline.jobs import JobError


async def records_in(bootstrap_servers: str, topic: str) -> int:
    """The offsets from the beginning to the end of all partitions; compaction and markers make the records fewer.

    Raises `JobError` if the brokers cannot be asked, or know no such topic.
    """
    try:
        async with Admin(bootstrap_servers) as admin:
            described = (await admin.describe_topics([topic])).value(topic)
            partitions = [TopicPartition(topic, each.partition) for each in described.partitions]
            first = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            last = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            return sum(last.value(each).offset - first.value(each).offset for each in partitions)
    except ClientError as error:
        raise JobError(str(error)) from error

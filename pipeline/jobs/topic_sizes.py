"""The number of records of a topic, from its brokers."""

from __future__ import annotations

from odradek.client import Admin, ClientError, OffsetSpec, TopicPartition
from odradek.client.cli.output.property_names import error_text
from odradek.pipeline.jobs import JobError
from odradek.pipeline.options.broker_options import Cluster


async def count_records(cluster: Cluster, topic: str) -> int:
    """Return the offsets from start to end of all partitions: the records, if there are no gaps or markers.

    Raises `JobError` if the brokers cannot be reached or the topic does not exist.
    """
    try:
        async with Admin(cluster.bootstrap_servers, **cluster.settings) as admin:
            described = (await admin.describe_topics([topic])).value(topic)
            partitions = [TopicPartition(topic, each.partition) for each in described.partitions]
            first = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            last = await admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            return sum(last.value(each).offset - first.value(each).offset for each in partitions)
    except ClientError as error:
        raise JobError(error_text(error)) from error

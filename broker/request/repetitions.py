"""Requests that name the same group, id or partition more than once: each is answered once.

Differs from Kafka, which answers most of them as often as they are named. A row can be much larger than the name that
requests it, so a request of some KiB would get an answer of gigabytes. No client repeats a name: those of Kafka make
their requests of maps.

Answers whose rows have a constant size, such as those of OffsetCommit, repeat what the request repeats, as Kafka's do.
Produce, Fetch, ListOffsets and others that Kafka answers once are answered in the same way here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from odradek.broker.request.time_slices import Steps
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

K = TypeVar("K")


def partitions_once(topics: Iterable[tuple[K, list[int]]]) -> Steps[dict[K, dict[int, None]]]:
    """Return the partitions of each topic, both in the order in which they are first named."""
    wanted: dict[K, dict[int, None]] = {}
    for topic, indexes in topics:
        yield
        wanted.setdefault(topic, {}).update(dict.fromkeys(indexes))
    return wanted


def drop_repeated_batches(request: ProduceRequest, partitions_count: int) -> None:
    """Keep the last batch of a partition that is named more than once, as Kafka does.

    `partitions_count` counts the partitions as often as they are named.
    """
    wanted: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in request.topic_data:
        of_topic = wanted.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            of_topic[data.index] = data
    if sum(map(len, wanted.values())) < partitions_count:
        request.topic_data = [TopicProduceData(*topic, list(rows.values())) for topic, rows in wanted.items()]

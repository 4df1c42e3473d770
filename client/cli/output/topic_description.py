"""The output of `topics describe`: a topic with its properties and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from odradek.client.admin.results import PartitionDescription, TopicDescription
from odradek.client.cli.output.tables import print_rows
from odradek.protocol.plural import pluralize


def document_of(
    topic: TopicDescription,
    shown: Sequence[PartitionDescription],
    configs: dict[str, str | None] | None,
    offsets: dict[int, dict[str, int]],
) -> dict[str, Any]:
    """Return the topic as its JSON document, with the properties set for it, and the offsets of partitions if given.

    `shown` are the partitions that it contains; `configs` is None if the brokers refuse to describe them.
    """
    partitions = [
        {
            "partition": one.partition,
            "leader": one.leader,
            "leader_epoch": one.leader_epoch,
            "replicas": list(one.replicas),
            "isr": list(one.isr),
            "offline_replicas": list(one.offline_replicas),
            **offsets.get(one.partition, {}),
        }
        for one in shown
    ]
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "internal": topic.is_internal,
        "configs": configs,
        "partitions": partitions,
    }


def print_topics(documents: list[dict[str, Any]]) -> None:
    """Print each topic as a heading and a table of its partitions."""
    for index, topic in enumerate(documents):
        if index:
            print()
        partitions = topic["partitions"]
        configs = ",".join(f"{name}={value}" for name, value in (topic["configs"] or {}).items())
        print(
            f"{topic['topic']}  id {topic['topic_id']}  {pluralize(len(partitions), 'partition')}"
            f"  replication factor {len(partitions[0]['replicas'])}{'  ' if configs else ''}{configs}"
        )
        print_rows(_columns(partitions), partitions, as_json=False)


def print_partitions(documents: list[dict[str, Any]]) -> None:
    """Print the partitions of all topics as one table."""
    rows = [{"topic": topic["topic"], **partition} for topic in documents for partition in topic["partitions"]]
    print_rows(_columns(rows), rows, as_json=False)


def _columns(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns of any row: a partition without a leader has no offsets."""
    return tuple(dict.fromkeys(column for row in rows for column in row))

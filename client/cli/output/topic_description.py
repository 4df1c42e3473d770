"""The output of `topics describe`: a topic with its properties and partitions."""

from __future__ import annotations

from typing import Any

from odradek.client.admin.results import TopicDescription
from odradek.client.cli.output.tables import print_rows
from odradek.protocol.plural import pluralize


def document_of(
    topic: TopicDescription, configs: dict[str, str | None], offsets: dict[int, dict[str, int]]
) -> dict[str, Any]:
    """Return the topic as its JSON document, with the properties set for it, and the offsets of partitions if given."""
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
        for one in topic.partitions
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
        configs = ",".join(f"{name}={value}" for name, value in topic["configs"].items())
        print(
            f"{topic['topic']}  id {topic['topic_id']}  {pluralize(len(partitions), 'partition')}"
            f"  replication factor {len(partitions[0]['replicas'])}{'  ' if configs else ''}{configs}"
        )
        print_rows(tuple(partitions[0]), partitions, as_json=False)

"""The numbers of partitions that brokers lead, for the placement of topics that are created together."""

from __future__ import annotations

from collections import Counter

from odradek.broker.metadata.image import MetadataImage, TopicImage


class LeaderCounts:
    """How many partitions each broker leads in an image, and of topics that are planned and not in it yet.

    The image is counted at the first question, because most requests create no topic that needs it: 0.1 s for a
    million partitions.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._planned: list[TopicImage] = []
        self._counts: Counter[int] | None = None

    def add(self, topic: TopicImage) -> None:
        """Count a topic that is planned."""
        if self._counts is None:
            self._planned.append(topic)
        else:
            self._counts.update([partition.leader for partition in topic.partitions])

    def of(self, node_id: int) -> int:
        """Return how many partitions a broker leads."""
        if self._counts is None:
            self._counts = Counter(
                [partition.leader for topic in self._image.topics.values() for partition in topic.partitions]
            )
            self._counts.update([partition.leader for topic in self._planned for partition in topic.partitions])
        return self._counts[node_id]

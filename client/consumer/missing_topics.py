"""Warnings about topics and partitions that a consumer should read and that do not exist: one warning for each.

Without them a misspelt name would look like a topic without new records. The consumer continues to request them with
the metadata, and reads them when they exist. A pattern names no topic, so it causes no warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from odradek.client.errors import ClientError, UnknownTopicError
from odradek.client.network.cluster import Cluster
from odradek.client.record import TopicPartition
from odradek.protocol.errors import ErrorCode
from odradek.protocol.plural import pluralize

_LOG = logging.getLogger(__name__)


class MissingTopics:
    """The warnings of one consumer: `subscribed` returns its topics, `assigned` its partitions."""

    def __init__(
        self,
        cluster: Cluster,
        subscribed: Callable[[], Collection[str]],
        assigned: Callable[[], Collection[TopicPartition]],
    ) -> None:
        self._cluster = cluster
        self._subscribed = subscribed
        self._assigned = assigned
        self._warned: set[str | TopicPartition] = set()

    def check(self) -> None:
        """Warn about what is missing in new metadata."""
        known = self._cluster.image.topics
        assigned = self._assigned()
        absent: set[str | TopicPartition] = {topic for topic, _ in assigned if topic not in known}
        absent.update(topic for topic in self._subscribed() if topic not in known)
        absent.update(
            one for one in assigned if one.topic in known and one.partition >= len(known[one.topic].partitions)
        )
        for place in absent - self._warned:
            failure = self._failure(place)
            if failure is not None:
                _LOG.warning("%s. The consumer reads it as soon as it exists", failure)
                self._warned.add(place)
        self._warned &= absent

    def _failure(self, place: str | TopicPartition) -> ClientError | None:
        """The reason why a topic or partition is missing; None for a temporary error."""
        if isinstance(place, str):
            failure = self._cluster.topic_failure(place)
            is_lasting = failure is not None and (isinstance(failure, UnknownTopicError) or not failure.retriable)
            return failure if is_lasting else None
        topic, partition = place
        count = len(self._cluster.image.topics[topic].partitions)
        return UnknownTopicError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "find a partition",
            f"the topic has {pluralize(count, 'partition')}",
            topic=topic,
            partition=partition,
        )

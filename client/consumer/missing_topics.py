"""Warn of topics and partitions that a consumer is to read and that do not exist: once, until they do.

A misspelt name looks like a topic without new records otherwise. What is missing is still asked for, at every refresh
of the metadata, and read as soon as it is there. A pattern names no topic, so none can be missing.
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
    """The warnings of one consumer: `subscribed` are the topics that it names, `assigned` its partitions."""

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
        """Look for what is missing; after new metadata."""
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
                _LOG.warning("%s. It is read when it is there", failure)
                self._warned.add(place)
        self._warned &= absent

    def _failure(self, place: str | TopicPartition) -> ClientError | None:
        """Why a topic or partition is not known; None if that may change in a moment."""
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

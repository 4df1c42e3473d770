"""Partitions and offsets of a cluster, requested by the driver before anything is read.

Each call requests current values from the leaders, with one request to each broker for all partitions. Nothing is
cached but the connections.

This uses the calls of the client's Admin without Admin itself, which would import twice as much: the process that
Spark starts for a stream's offsets spends most of its time on imports.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from odradek.client.admin.calls import Calls
from odradek.client.admin.log_dirs import describe_log_dirs
from odradek.client.admin.offsets import list_offsets
from odradek.client.admin.results import Results
from odradek.client.admin.topics import describe_topics, list_topics
from odradek.client.config import AdminConfig, IsolationLevel, parse_bootstrap_servers
from odradek.client.errors import ClientError, UnknownTopicError
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import BlockingClient
from odradek.pipeline.options.bounds import EARLIEST, LATEST, Bound, Numbers
from odradek.pipeline.options.broker_options import Cluster, ReadOptions, Subscription
from odradek.protocol.schema import ZERO_UUID
from odradek.protocol.uuids import uuid_to_text

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

_SIZES_WITHIN_MS = 5000
_NO_ID = uuid_to_text(ZERO_UUID)


class NoOffsetError(Exception):
    """No record is as late as the start time."""


class Subscribed(NamedTuple):
    """The partitions that a subscription matches, in order, and the ids of their topics by name.

    A topic that is deleted and created again has another id. Brokers before Kafka 2.8 have none.
    """

    partitions: list[TopicPartition]
    topic_ids: dict[str, str]


class ClusterOffsets:
    """Partitions and offsets of one cluster. Methods block, start no thread, and raise ClientError.

    The constructor and each method retry until the timeout of `cluster`. With `skips_missing`, results leave out topics
    and partitions that do not exist; otherwise methods raise UnknownTopicError.
    """

    def __init__(self, cluster: Cluster, isolation_level: IsolationLevel, *, skips_missing: bool = False) -> None:
        self._skips_missing = skips_missing
        self._reads_committed = isolation_level == "read_committed"
        config = AdminConfig(
            bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers),
            default_api_timeout_ms=cluster.timeout_ms,
            **cluster.settings,
        )
        self._client = BlockingClient(config, cluster.timeout_ms)
        self._calls = Calls(config, self._client.cluster)

    def close(self) -> None:
        self._client.close()

    def subscribed(self, subscription: Subscription) -> Subscribed:
        """Return the partitions that a subscription matches now.

        Assigned partitions that do not exist are left out, as in Spark's connector.
        """
        assigned = set(subscription.partitions)
        topics: Iterable[str] = {partition.topic for partition in assigned} if assigned else subscription.topics
        if subscription.pattern is not None:
            pattern = re.compile(subscription.pattern)
            existing = self._run(list_topics(self._calls, include_internal=False, timeout_ms=None))
            topics = [name for name in existing if pattern.fullmatch(name)]
        described = self._run(describe_topics(self._calls, sorted(topics), by_id=False, timeout_ms=None))
        known = self._values(described)
        found = {TopicPartition(name, index) for name, topic in known.items() for index in range(len(topic.partitions))}
        ids = {name: topic.topic_id for name, topic in known.items() if topic.topic_id != _NO_ID}
        return Subscribed(sorted(found & assigned if assigned else found), ids)

    def at(self, positions: Mapping[TopicPartition, int]) -> Numbers:
        """Return the first offset at or after each time in ms, -1 if there is none; or that of EARLIEST or LATEST."""
        if not positions:
            return {}
        listed = self._run(list_offsets(self._calls, positions, read_committed=self._reads_committed, timeout_ms=None))
        return {partition: found.offset for partition, found in self._values(listed).items()}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        return self.at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        """Return the end offsets: the last stable offsets with `read_committed`, otherwise the high watermarks."""
        return self.at(dict.fromkeys(partitions, LATEST))

    def bytes_on_disk(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the sizes of partitions, without those that brokers refuse to report, or not in time."""
        brokers = describe_log_dirs(self._calls, None, partitions=partitions, timeout_ms=_SIZES_WITHIN_MS)
        sizes: dict[TopicPartition, int] = {}
        for log_dirs in self._run(brokers).values():
            for log_dir in () if isinstance(log_dirs, ClientError) else log_dirs:
                for partition, replica in log_dir.replicas.items():
                    sizes[partition] = max(sizes.get(partition, 0), replica.size)
        return sizes

    def _values(self, results: Results[K, T]) -> dict[K, T]:
        """Return the values of all items. Raises the first error among them, except those that are skipped."""
        if self._skips_missing:
            left = {item: found for item, found in results.items() if not isinstance(found, UnknownTopicError)}
            results = Results(left)
        return results.values_or_raise()

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._client.run(call)


def starting_offsets(offsets: ClusterOffsets, options: ReadOptions, numbers: Numbers) -> Numbers:
    """Return the start offsets for the numbers of the option. Raises NoOffsetError for a time after the last record.

    With the strategy `latest` such a partition starts at its end.
    """
    found = _resolve(offsets, options.start, numbers)
    missing = [partition for partition, offset in found.items() if offset < 0]
    if missing and options.start_fallback == "error":
        raise NoOffsetError(
            "; ".join(
                f"{partition.topic}-{partition.partition} has no record as late as {numbers[partition]}"
                for partition in missing
            )
        )
    return found | offsets.latest(missing)


def ending_offsets(offsets: ClusterOffsets, options: ReadOptions, numbers: Numbers) -> Numbers:
    """Return the end offsets, exclusive; the end of a partition for a time after its last record."""
    found = _resolve(offsets, options.end, numbers)
    return found | offsets.latest([partition for partition, offset in found.items() if offset < 0])


def _resolve(offsets: ClusterOffsets, bound: Bound, numbers: Numbers) -> Numbers:
    unresolved = {partition: number for partition, number in numbers.items() if bound.by_time or number < 0}
    resolved = {partition: number for partition, number in numbers.items() if partition not in unresolved}
    return resolved | offsets.at(unresolved)

"""Partitions and offsets of a cluster, requested by the driver before anything is read.

Each call requests current values from the leaders, with one request to each broker for all partitions. Nothing is
cached but the connections.

This uses the calls of the client's Admin without Admin itself, which would import twice as much: the process that
Spark starts for a stream's offsets spends most of its time on imports.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from odradek.client.admin.calls import Calls
from odradek.client.admin.offsets import list_offsets
from odradek.client.admin.topics import describe_topics, list_topics
from odradek.client.config import AdminConfig, IsolationLevel, parse_bootstrap_servers
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import EventLoop, connect
from odradek.pipeline.options.bounds import EARLIEST, LATEST, Bound, Numbers
from odradek.pipeline.options.broker_options import Cluster, ReadOptions, Subscription

T = TypeVar("T")

_TIMEOUT_MS: Final = 60000  # of a call: Kafka's default.api.timeout.ms


class NoOffsetError(Exception):
    """No record is as late as the start time."""


class ClusterOffsets:
    """Partitions and offsets of one cluster. Methods block, start no thread, and raise ClientError."""

    def __init__(self, cluster: Cluster, isolation_level: IsolationLevel) -> None:
        self._reads_committed = isolation_level == "read_committed"
        self._loop = EventLoop()
        try:
            self._calls = self._run(_started(cluster))
        except BaseException:
            self._loop.close()
            raise

    def close(self) -> None:
        self._run(self._calls.cluster.close())
        self._loop.close()

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        """Return the partitions that a subscription matches now. Raises UnknownTopicError, but not for a pattern.

        Assigned partitions that do not exist are left out, as in Spark's connector.
        """
        assigned = set(subscription.partitions)
        topics: Iterable[str] = {partition.topic for partition in assigned} if assigned else subscription.topics
        if subscription.pattern is not None:
            pattern = re.compile(subscription.pattern)
            existing = self._run(list_topics(self._calls, include_internal=False, timeout_ms=None))
            topics = [name for name in existing if pattern.fullmatch(name)]
        described = self._run(describe_topics(self._calls, sorted(topics), by_id=False, timeout_ms=None))
        found = {
            TopicPartition(name, index)
            for name, topic in described.values_or_raise().items()
            for index in range(len(topic.partitions))
        }
        return sorted(found & assigned if assigned else found)

    def at(self, positions: Mapping[TopicPartition, int]) -> Numbers:
        """Return the first offset at or after each time in ms, -1 if there is none; or that of EARLIEST or LATEST."""
        if not positions:
            return {}
        listed = self._run(list_offsets(self._calls, positions, read_committed=self._reads_committed, timeout_ms=None))
        return {partition: found.offset for partition, found in listed.values_or_raise().items()}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        return self.at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        """Return the end offsets: the last stable offsets with `read_committed`, otherwise the high watermarks."""
        return self.at(dict.fromkeys(partitions, LATEST))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(call)


async def _started(cluster: Cluster) -> Calls:
    config = AdminConfig(
        bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers),
        default_api_timeout_ms=_TIMEOUT_MS,
        **cluster.settings,
    )
    return Calls(config, await connect(config))


def starting_offsets(offsets: ClusterOffsets, options: ReadOptions, partitions: list[TopicPartition]) -> Numbers:
    """Return the start offsets. Raises ValueError; NoOffsetError for a time after the last record, unless `latest`."""
    found = _resolve(offsets, options.start, "starting", partitions)
    missing = [partition for partition, offset in found.items() if offset < 0]
    if missing and options.start_fallback == "error":
        times = dict.fromkeys(partitions, options.start.everywhere) | options.start.each
        raise NoOffsetError(
            "; ".join(
                f"{partition.topic}-{partition.partition} has no record as late as {times[partition]}"
                for partition in missing
            )
        )
    return found | offsets.latest(missing)


def ending_offsets(offsets: ClusterOffsets, options: ReadOptions, partitions: list[TopicPartition]) -> Numbers:
    """Return the end offsets, exclusive; the end of a partition for a time after its last record. Raises ValueError."""
    found = _resolve(offsets, options.end, "ending", partitions)
    return found | offsets.latest([partition for partition, offset in found.items() if offset < 0])


def _resolve(offsets: ClusterOffsets, bound: Bound, side: str, partitions: list[TopicPartition]) -> Numbers:
    numbers = bound.numbers_of(partitions, side)
    unresolved = {partition: number for partition, number in numbers.items() if bound.by_time or number < 0}
    return numbers | offsets.at(unresolved)

"""What the driver asks the brokers before anything is read: which partitions there are, and where they begin and end.

Every question is asked anew, of the leaders, and answered for all partitions by one request a broker. Nothing is
remembered between two questions but the connections.

They are calls of the client's Admin, without Admin itself, which would import twice as much: a process that a stream
starts for its offsets does nothing that takes longer than to import.
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

_TIMEOUT_MS: Final = 60000  # of a question: Kafka's default.api.timeout.ms


class NoOffsetError(Exception):
    """No record is as late as the time that was asked for."""


class ClusterOffsets:
    """Partitions and offsets of one cluster; `close` ends its connections. Methods raise ClientError.

    It blocks while it asks, and leaves no thread behind.
    """

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
        """The partitions that a subscription means now. Raises UnknownTopicError, but not for a pattern.

        An assigned partition that its topic does not have is left out, as by Spark's connector.
        """
        assigned = set(subscription.partitions)
        topics: Iterable[str] = {partition.topic for partition in assigned} if assigned else subscription.topics
        if subscription.pattern is not None:
            pattern = re.compile(subscription.pattern)
            there = self._run(list_topics(self._calls, include_internal=False, timeout_ms=None))
            topics = [name for name in there if pattern.fullmatch(name)]
        described = self._run(describe_topics(self._calls, sorted(topics), by_id=False, timeout_ms=None))
        found = {
            TopicPartition(name, index)
            for name, topic in described.values_or_raise().items()
            for index in range(len(topic.partitions))
        }
        return sorted(found & assigned if assigned else found)

    def at(self, places: Mapping[TopicPartition, int]) -> Numbers:
        """The first offset at or after each time in ms, -1 without any; or the offset of EARLIEST or LATEST."""
        if not places:
            return {}
        listed = self._run(list_offsets(self._calls, places, read_committed=self._reads_committed, timeout_ms=None))
        return {partition: found.offset for partition, found in listed.values_or_raise().items()}

    def earliest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        return self.at(dict.fromkeys(partitions, EARLIEST))

    def latest(self, partitions: Iterable[TopicPartition]) -> Numbers:
        """Where the partitions end: at the last stable offset for those who read committed records only."""
        return self.at(dict.fromkeys(partitions, LATEST))

    def _run(self, question: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(question)


async def _started(cluster: Cluster) -> Calls:
    config = AdminConfig(
        bootstrap_servers=parse_bootstrap_servers(cluster.bootstrap_servers),
        default_api_timeout_ms=_TIMEOUT_MS,
        **cluster.settings,
    )
    return Calls(config, await connect(config))


def starting_offsets(offsets: ClusterOffsets, options: ReadOptions, partitions: list[TopicPartition]) -> Numbers:
    """Where to start. Raises NoOffsetError for a time after the last record, if the options say so, and ValueError."""
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
    """Where to end, exclusive; at the end of a partition where no record is as late as a time. Raises ValueError."""
    found = _resolve(offsets, options.end, "ending", partitions)
    return found | offsets.latest([partition for partition, offset in found.items() if offset < 0])


def _resolve(offsets: ClusterOffsets, bound: Bound, side: str, partitions: list[TopicPartition]) -> Numbers:
    numbers = bound.numbers_of(partitions, side)
    to_ask = {partition: number for partition, number in numbers.items() if bound.by_time or number < 0}
    return numbers | offsets.at(to_ask)

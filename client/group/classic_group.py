"""A subscribed consumer by the classic protocol: the members assign among themselves, in rebalances.

| rebalancing | before joining | after |
|---|---|---|
| eager | everything is committed and given up | what is assigned is taken over |
| cooperative (KIP-429) | nothing | what goes to others is committed and given up, what is new is taken over |

Cooperative members that gave something up join again at once, for it is free only now.

The first also where only some of the assignors that a member offers are cooperative. The leader has the group assigned
again when topics that members want came, went or grew; whoever subscribes by a pattern joins again when other topics
match.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import ClientError
from odradek.client.group.assignors import ASSIGNORS
from odradek.client.group.classic_member import ClassicMember, ErrorAction
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.group import Group
from odradek.client.network.cluster import Cluster
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse

_LOG = logging.getLogger(__name__)


class ClassicGroup(Group):
    """See the module's docstring, and `Group`."""

    _member: ClassicMember

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        subscription: SubscriptionState,
        on_assignment: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        super().__init__(config, cluster, subscription, on_assignment, on_news)
        self._member = ClassicMember(config, self._coordinator, self._count_partitions)
        self._is_eager = not all(ASSIGNORS[name].is_cooperative for name in config.partition_assignment_strategy)
        self._counts: Mapping[str, int] = {}  # partitions of the topics that this leader assigned from
        self._listed_at = float("-inf")
        cluster.on_change.append(self._check_partition_counts)

    @property
    def _interval(self) -> float:
        return self._config.heartbeat_interval_ms / 1000

    async def _rejoin(self) -> None:
        owned = self._owned()
        self._counts = {}
        if self._is_lost:
            self._is_lost = False
            await self._lose(owned)
        elif self._is_eager:
            await self._revoke(owned)
        topics = await self._wanted_topics()
        joined = await self._member.join(topics, self._owned())
        await self._take_over(joined.partitions)

    async def _heartbeat(self) -> None:
        await self._member.heartbeat()
        age = self._loop.time() - self._listed_at
        if self._pattern is None or age <= self._config.metadata_max_age_ms / 1000:
            return
        if await self._matching_topics(self._pattern) != self._topics:
            self._request_join()

    def _handle_heartbeat_error(self, error: ClientError) -> None:
        """A heartbeat was refused, or not answered."""
        _LOG.info("%s", error)
        match self._member.handle_error(error):
            case ErrorAction.REJOIN:
                self._is_lost |= self._member.generation == NO_GENERATION
                self._request_join()
            case ErrorAction.NEW_MEMBER:
                self._lost()
            case ErrorAction.FATAL:
                self._failure = error
                self._lost()

    async def _wanted_topics(self) -> frozenset[str]:
        if self._pattern is not None:
            self._topics = await self._matching_topics(self._pattern)
        return self._topics

    async def _matching_topics(self, pattern: re.Pattern[str]) -> frozenset[str]:
        connection = await self._cluster.any_connection()
        response = await connection.send(MetadataRequest(None, False), MetadataResponse)
        self._listed_at = self._loop.time()
        names = (topic.name for topic in response.topics if topic.name and not topic.is_internal)
        return frozenset(name for name in names if pattern.fullmatch(name))

    async def _count_partitions(self, topics: Collection[str]) -> Mapping[str, int]:
        """The partitions of topics, for the leader of the group; those that do not exist are left out."""
        self._cluster.track(topics)
        if not set(topics) <= self._cluster.image.topics.keys():
            await self._cluster.refresh()
        self._counts = self._partition_counts(topics)
        return {topic: count for topic, count in self._counts.items() if count}

    def _partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        known = self._cluster.image.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    def _check_partition_counts(self) -> None:
        """After new metadata: the leader has the group assigned again when topics came, went or grew."""
        if self._counts and self._partition_counts(self._counts) != self._counts:
            self._counts = {}
            self._request_join()

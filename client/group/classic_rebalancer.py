"""Rebalances by the classic protocol: the leader of the group assigns the partitions.

| rebalancing | before joining | after |
|---|---|---|
| eager | everything is revoked | the assigned partitions are taken over |
| cooperative (KIP-429) | nothing | partitions of other members are revoked, new ones are taken over |

A cooperative member that revoked partitions joins again at once: only then can they be assigned to others.

Rebalancing is eager unless all assignors that the member offers are cooperative. The leader joins again, for a
new assignment, when subscribed topics are created or deleted or get more partitions. A member with a
pattern joins again when the set of matching topics changes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.errors import ClientError, MembershipError
from odradek.client.group.assignors import ASSIGNORS
from odradek.client.group.classic_member import ClassicMember
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.owned_partitions import OwnedPartitions
from odradek.client.group.rebalancer import ErrorAction, until_answered
from odradek.client.network.cluster import Cluster
from odradek.client.network.coordinator import Coordinator
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse


class ClassicRebalancer:
    """See the module's docstring, and `Rebalancer`. `on_join_needed` requests a call of `rejoin`."""

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        coordinator: Coordinator,
        owned: OwnedPartitions,
        on_join_needed: Callable[[], None],
    ) -> None:
        self.member = ClassicMember(config, coordinator, self._count_partitions)
        self.heartbeat_interval = config.heartbeat_interval_ms / 1000
        self._config = config
        self._cluster = cluster
        self._owned = owned
        self._on_join_needed = on_join_needed
        self._is_eager = not all(ASSIGNORS[name].is_cooperative for name in config.partition_assignment_strategy)
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._max_age = config.metadata_max_age_ms / 1000
        self._listed_at = float("-inf")  # when the topics were last compared with the pattern
        self._counts: Mapping[str, int] = {}  # the partitions of each topic that this leader assigned
        cluster.on_change.append(self._check_partition_counts)

    def subscribe(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        self._topics, self._pattern = topics, pattern

    async def rejoin(self) -> bool:
        self._counts = {}
        self._cluster.track("assigned by the leader", ())
        if self._is_eager:
            await self._owned.revoke(self._owned.partitions())
        if (pattern := self._pattern) is not None:
            self._topics = await until_answered(self._config, lambda: self._matching_topics(pattern))
        owned = self._owned.partitions()
        try:
            joined = await self.member.join(self._topics, owned)
        except MembershipError:
            if not owned or self.member.generation != NO_GENERATION:
                raise
            await self._owned.lose(owned)
            return True
        return await self._owned.take_over(joined.partitions)

    async def heartbeat(self) -> None:
        await self.member.heartbeat()
        age = asyncio.get_running_loop().time() - self._listed_at
        if self._pattern is None or age <= self._max_age:
            return
        if await self._matching_topics(self._pattern) != self._topics:
            self._on_join_needed()

    async def keep_alive(self) -> None:
        await self.member.heartbeat()

    def handle_error(self, error: ClientError) -> ErrorAction:
        return self.member.handle_error(error)

    async def _matching_topics(self, pattern: re.Pattern[str]) -> frozenset[str]:
        connection = await self._cluster.any_connection()
        response = await connection.send(MetadataRequest(None, False), MetadataResponse)
        self._listed_at = asyncio.get_running_loop().time()
        names = (topic.name for topic in response.topics if topic.name and not topic.is_internal)
        return frozenset(name for name in names if pattern.fullmatch(name))

    async def _count_partitions(self, topics: Collection[str]) -> Mapping[str, int]:
        """Count the partitions of topics, for the leader of the group; topics that do not exist are left out."""
        self._cluster.track("assigned by the leader", topics)
        if not set(topics) <= self._cluster.image.topics.keys():
            await self._cluster.refresh()
        self._counts = self._partition_counts(topics)
        return {topic: count for topic, count in self._counts.items() if count}

    def _partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        known = self._cluster.image.topics
        return {topic: len(known[topic].partitions) if topic in known else 0 for topic in topics}

    def _check_partition_counts(self) -> None:
        """Join again, as the leader, if new metadata have other numbers of partitions than were assigned."""
        if self._counts and self._partition_counts(self._counts) != self._counts:
            self._counts = {}
            self._on_join_needed()

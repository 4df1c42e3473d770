"""Rebalances by the newer protocol: the coordinator assigns, and members reconcile step by step (KIP-848).

```
        heartbeat: another target                     rejoin()
owned ----------------------------> owned and target ---------> 1. commit and revoke what is not in the target
                                                                2. take over the new ones
                                                                3. report to the coordinator what is owned now
```
No member waits for the others: the target of a member contains a partition of another only after that one has reported
that it revoked it. The broker evaluates patterns, in its syntax (RE2), against whole names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.errors import ClientError, broker_error
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.consumer_member import ConsumerMember
from odradek.client.group.owned_partitions import OwnedPartitions
from odradek.client.group.rebalancer import ErrorAction, until_answered
from odradek.client.network.cluster import Cluster
from odradek.client.network.coordinator import Coordinator
from odradek.client.record import TopicPartition
from odradek.protocol.api import METADATA_KEY
from odradek.protocol.messages.metadata import (
    FIRST_VERSION_WITH_REQUESTS_BY_ID,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


class ConsumerRebalancer:
    """See the module's docstring, and `Rebalancer`.

    `on_join_needed` requests a call of `rejoin`; `on_error` handles the error of a heartbeat that `rejoin` sent.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        coordinator: Coordinator,
        owned: OwnedPartitions,
        on_join_needed: Callable[[], None],
        on_error: Callable[[ClientError], object],
    ) -> None:
        self.member = ConsumerMember(config, coordinator)
        self._config = config
        self._cluster = cluster
        self._owned = owned
        self._on_join_needed = on_join_needed
        self._on_error = on_error
        self._ids: dict[str, bytes] = {}  # of the topics in the target, and of those of which partitions are owned

    @property
    def heartbeat_interval(self) -> float:
        return self.member.heartbeat_interval

    def subscribe(self, topics: frozenset[str], pattern: re.Pattern[str] | None) -> None:
        self.member.subscribe(topics, None if pattern is None else pattern.pattern)

    async def rejoin(self) -> bool:
        if self.member.generation == NO_GENERATION:
            await self.member.join()
        elif not self.member.knows_target and not await self._learn_target():
            return False  # the error requested another join, or ends the membership
        target = await self._target()
        if sorted(target) != self._owned.partitions():
            await self._owned.take_over(target)
        if self.member.generation == NO_GENERATION:
            return True  # removed while the listener ran
        try:
            self._compare_with_target(await self._report_owned(), self._ids.values())
        except ClientError as error:
            self._on_error(error)  # the next heartbeat reports it again
        return False

    async def heartbeat(self) -> None:
        self._compare_with_target(await self._report_owned(), self.member.target.keys())

    async def keep_alive(self) -> None:
        await self.member.keep_alive()

    def handle_error(self, error: ClientError) -> ErrorAction:
        if self.member.handle_error(error):
            return ErrorAction.NEW_MEMBER
        return ErrorAction.RETRY if error.retriable else ErrorAction.FATAL

    async def _learn_target(self) -> bool:
        """Report what is owned again until the coordinator answers. Returns False if the answer is an error."""
        try:
            await until_answered(self._config, self._report_again)
        except ClientError as error:
            self._on_error(error)
            return False
        return True

    async def _report_again(self) -> None:
        try:
            await self._report_owned()
        except ClientError as error:
            self.member.handle_error(error)  # finds the coordinator again if it has moved
            raise

    def _compare_with_target(self, owned: Mapping[bytes, list[int]], topic_ids: Collection[bytes]) -> None:
        """Request a call of `rejoin` if the target of these topics is not what is owned."""
        target = self.member.target
        due = {topic_id: sorted(target[topic_id]) for topic_id in topic_ids if target.get(topic_id)}
        if due != owned:
            self._on_join_needed()

    async def _report_owned(self) -> dict[bytes, list[int]]:
        owned: dict[bytes, list[int]] = {}
        for topic, partition in self._owned.partitions():
            if topic in self._ids:
                owned.setdefault(self._ids[topic], []).append(partition)
        await self.member.heartbeat(owned)
        return owned

    async def _target(self) -> list[TopicPartition]:
        """The target assignment, by topic name."""
        target = self.member.target
        names = {topic_id: name for name, topic_id in self._ids.items()}
        if not target.keys() <= names.keys():
            names = await until_answered(self._config, lambda: self._names(list(target)))
        owned = {partition.topic for partition in self._owned.partitions()}
        still_owned = {name: topic_id for name, topic_id in self._ids.items() if name in owned}
        self._ids = still_owned | {names[topic_id]: topic_id for topic_id in target if topic_id in names}
        return [
            TopicPartition(names[topic_id], index)
            for topic_id, partitions in target.items()
            if topic_id in names
            for index in partitions
        ]

    async def _names(self, topic_ids: list[bytes]) -> dict[bytes, str]:
        """Look up the names of topics; deleted topics are left out."""
        connection = await self._cluster.any_connection()
        version = connection.versions.highest(METADATA_KEY, at_least=FIRST_VERSION_WITH_REQUESTS_BY_ID)
        request = MetadataRequest([MetadataRequestTopic(topic_id, None) for topic_id in topic_ids], False)
        response = await connection.send(request, MetadataResponse, version=version)
        if response.error_code:
            raise broker_error(response.error_code, "request metadata", broker=connection.name)
        return {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}

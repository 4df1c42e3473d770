"""A subscribed consumer by the newer protocol: the coordinator assigns, and members follow step by step (KIP-848).

```
        heartbeat: another target                     tend()
owned ----------------------------> owned and target ---------> 1. commit and give up what is not in the target
                                                                2. take over what is new
                                                                3. tell the coordinator what is owned now
```
Nobody waits for the others: a partition that another member owns is not in the target before that one has told the
coordinator that it gave it up. A pattern is evaluated by the broker, in its syntax (RE2), against whole names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from odradek.client.config import ConsumerConfig
from odradek.client.consumer.subscription_state import SubscriptionState
from odradek.client.errors import ClientError, broker_error
from odradek.client.group.committed_offsets import NO_GENERATION
from odradek.client.group.consumer_member import ConsumerMember
from odradek.client.group.group import Group
from odradek.client.group.rebalance_listener import RebalanceListener
from odradek.client.network.cluster import Cluster
from odradek.client.record import TopicPartition
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

_METADATA_KEY = 3
_FIRST_METADATA_BY_ID = 12


class ConsumerGroup(Group):
    """See the module's docstring, and `Group`."""

    _member: ConsumerMember

    def __init__(
        self,
        config: ConsumerConfig,
        cluster: Cluster,
        subscription: SubscriptionState,
        on_assignment: Callable[[], None],
        on_news: Callable[[], None],
    ) -> None:
        super().__init__(config, cluster, subscription, on_assignment, on_news)
        self._member = ConsumerMember(config, self._coordinator)
        self._ids: dict[str, bytes] = {}  # of the topics in the target

    @property
    def _interval(self) -> float:
        return self._member.interval

    @property
    def _regex(self) -> str | None:
        return None if self._pattern is None else self._pattern.pattern

    async def subscribe(
        self, topics: Collection[str], pattern: re.Pattern[str] | None, listener: RebalanceListener | None
    ) -> None:
        await super().subscribe(topics, pattern, listener)
        self._member.send_everything_next()

    async def _rejoin(self) -> None:
        if self._is_lost:
            self._is_lost = False
            await self._lose(self._owned())
        if self._member.generation == NO_GENERATION:
            await self._member.join(self._topics, self._regex)
        target = await self._target()
        if sorted(target) != self._owned():
            await self._take_over(target)
            self._wants_join = False
        try:
            self._follow(await self._report_owned(), self._ids.values())
        except ClientError as error:
            self._handle_heartbeat_error(error)  # the next heartbeat tells it again

    async def _heartbeat(self) -> None:
        self._follow(await self._report_owned(), self._member.target.keys())

    def _follow(self, owned: Mapping[bytes, list[int]], known: Collection[bytes]) -> None:
        """Have the target reached, as far as it is of topics whose names are known."""
        target = self._member.target
        due = {topic_id: sorted(target[topic_id]) for topic_id in known if target.get(topic_id)}
        if due != owned:
            self._request_join()

    async def _report_owned(self) -> dict[bytes, list[int]]:
        owned: dict[bytes, list[int]] = {}
        for topic, partition in self._owned():
            if topic in self._ids:
                owned.setdefault(self._ids[topic], []).append(partition)
        await self._member.heartbeat(self._topics, self._regex, owned)
        return owned

    def _handle_heartbeat_error(self, error: ClientError) -> None:
        if self._member.handle_error(error):
            self._lost()
        elif not error.retriable:
            self._failure = error
            self._lost()

    async def _target(self) -> list[TopicPartition]:
        """What this member shall own, by name."""
        target = self._member.target
        names = {topic_id: name for name, topic_id in self._ids.items()}
        if not target.keys() <= names.keys():
            names = await self._names(list(target))
        self._ids = {names[topic_id]: topic_id for topic_id in target if topic_id in names}
        return [
            TopicPartition(names[topic_id], index)
            for topic_id, partitions in target.items()
            if topic_id in names
            for index in partitions
        ]

    async def _names(self, topic_ids: list[bytes]) -> dict[bytes, str]:
        """The names of topics; one that is not there any more is left out."""
        connection = await self._cluster.any_connection()
        version = connection.versions.highest(_METADATA_KEY, at_least=_FIRST_METADATA_BY_ID)
        request = MetadataRequest([MetadataRequestTopic(topic_id, None) for topic_id in topic_ids], False)
        response = await connection.send(request, MetadataResponse, version=version)
        if response.error_code:
            raise broker_error(response.error_code, "ask for metadata", broker=connection.name)
        return {topic.topic_id: topic.name for topic in response.topics if topic.name and not topic.error_code}

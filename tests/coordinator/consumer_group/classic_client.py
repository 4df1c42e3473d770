"""A member of the classic protocol in a group of the consumer protocol, as `churn` simulates it."""

from __future__ import annotations

from typing import Any

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.consumer_group.consumer_protocol import read_assignment
from odradek.broker.coordinator.runtime.events import PendingReply
from odradek.protocol.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolSubscription, TopicPartition
from tests.coordinator.consumer_group.transcript import Group

Partition = tuple[bytes, int]

_TIMEOUT_MS = 20_000
_GIVES_UP_AFTER_MS = 11_000
"""Shorter than the coordinator's, whose timers may have begun with a response that was lost."""


class ClassicClient:
    """One process. An eager one revokes all partitions before it joins, others only those that they must (KIP-429)."""

    instance_id = None

    def __init__(self, name: str, topics: list[str], *, is_eager: bool) -> None:
        self.name = name
        self.topics = topics
        self.is_eager = is_eager
        self.incarnation = 0
        self.wakes_at: int | None = None
        self.heard_at = 0
        self.start_over()

    def start_over(self) -> None:
        self.incarnation += 1
        self.member_id = f"{self.name}-{self.incarnation}"
        self.rejoin()

    def rejoin(self) -> None:
        """Abandon everything, under the same member id."""
        self.generation_id = -1
        self.next_step = "join"
        self.owned: set[Partition] = set()

    @property
    def generation(self) -> int:
        """The ids and the generation of its commits."""
        return self.generation_id

    @property
    def must_hurry(self) -> bool:
        return self.next_step != "heartbeat"

    def step(self, group: Group, *, is_lost: bool) -> None:
        """Send the request that is due, and handle its response unless that is lost. Raises KafkaError."""
        if group.now_ms - self.heard_at > _GIVES_UP_AFTER_MS:
            self.rejoin()  # as clients do that were not polled for too long
        if self.next_step == "join" and self.is_eager:
            self.owned = set()
        steps = {"join": self._join, "sync": self._sync, "heartbeat": self._heartbeat}
        event, hear = steps[self.next_step](group)
        ((_, response),) = group.handle(event).replies
        if not is_lost:
            self.heard_at = group.now_ms
            hear(response)

    def leave(self, group: Group, *, for_good: bool) -> None:
        """Leave. A process that has just joined may not have its id yet, and sends nothing then."""
        self.owned = set()
        if self.generation_id >= 0 or for_good:
            group.handle(Leave(PendingReply(), (Leaving(self.member_id, None, "churn"),)))

    def _join(self, group: Group) -> tuple[Any, Any]:
        by_topic: dict[str, list[int]] = {}
        for topic_id, number in self.owned:
            by_topic.setdefault(group.image.topics_by_id[topic_id].name, []).append(number)
        owned = [TopicPartition(topic, numbers) for topic, numbers in by_topic.items()]
        subscription = ConsumerProtocolSubscription(self.topics, owned_partitions=owned)
        metadata = b"\0\1" + bytes(encode(subscription, 1))
        event = Join(
            PendingReply(),
            member_id=self.member_id,
            new_member_id="",
            group_instance_id=None,
            client_id="classic",
            client_host="/127.0.0.1",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=_TIMEOUT_MS,
            protocol_type="consumer",
            protocols=(("cooperative-sticky", metadata),),
            reason="",
            requires_known_member_id=False,
            may_skip_assignment=True,
        )
        return event, self._joined

    def _joined(self, response: Any) -> None:
        self.generation_id = response.generation_id
        self.next_step = "sync"

    def _sync(self, group: Group) -> tuple[Any, Any]:
        def synced(response: Any) -> None:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.next_step = "join"
                return
            assigned = {
                (group.image.topics[row.topic].topic_id, number)
                for row in read_assignment(response.assignment).assigned_partitions
                for number in row.partitions
            }
            # A member that revoked partitions joins again, so that others may get them.
            self.next_step = "join" if self.owned - assigned else "heartbeat"
            self.owned = assigned

        return Sync(
            PendingReply(), self.generation_id, self.member_id, None, "consumer", "cooperative-sticky", {}
        ), synced

    def _heartbeat(self, group: Group) -> tuple[Any, Any]:
        def heard(response: Any) -> None:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self.next_step = "join"

        return Heartbeat(PendingReply(), self.generation_id, self.member_id, None), heard

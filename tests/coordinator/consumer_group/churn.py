"""Simulated members: they join, heartbeat, revoke and take partitions, freeze, die and return, at random by seed.

Every client does what KIP-848 asks of it: it gives partitions up before it says so, takes what it is assigned, and
starts over when it is fenced. A frozen one hears nothing, and believes what it believed. What must hold at any time:

- A partition was given to one member in each epoch.
- Of the current members of the group, at most one believes that a partition is its own.
- What `reading` says of records and commits.
"""

from __future__ import annotations

import random
from typing import Any

import msgspec

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tests.coordinator.consumer_group.classic_client import ClassicClient
from tests.coordinator.consumer_group.reading import Reading
from tests.coordinator.consumer_group.transcript import Group

Partition = tuple[bytes, int]

HEARTBEAT_MS = 5_000
_START_OVER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.ILLEGAL_GENERATION}


class Client:
    """One process with its own view of the group. `wakes_at` is the time of its next action; None: dead."""

    def __init__(self, name: str, topics: list[str], instance_id: str | None, assignor: str | None) -> None:
        self.name = name
        self.topics = topics
        self.instance_id = instance_id
        self.assignor = assignor
        self.incarnation = 0
        self.wakes_at: int | None = None
        self.start_over()

    def start_over(self) -> None:
        self.incarnation += 1
        self.member_id = f"{self.name}-{self.incarnation}"
        self.rejoin()

    def rejoin(self) -> None:
        """Abandon everything, under the same member id."""
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.assigned: set[Partition] = set()
        self.has_news = False
        self.missed_an_answer = False

    @property
    def generation(self) -> int:
        """The ids and the epoch of its commits."""
        return self.epoch

    def request(self) -> dict[str, Any]:
        if self.epoch == 0:
            return {
                "rebalance_timeout_ms": 20_000,
                "topic_partitions": [],
                "subscribed_topic_names": self.topics,
                "instance_id": self.instance_id,
                "server_assignor": self.assignor,
            }
        fields: dict[str, Any] = {"instance_id": self.instance_id}
        if self.missed_an_answer:
            # As after any failed request, the client sends every field, and gets its assignment.
            self.missed_an_answer = False
            self.has_news = True
            fields |= {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": self.topics}
        if self.has_news:
            self.has_news = False
            by_topic: dict[bytes, list[int]] = {}
            for topic_id, number in self.owned:
                by_topic.setdefault(topic_id, []).append(number)
            fields["topic_partitions"] = [TopicPartitions(topic, numbers) for topic, numbers in by_topic.items()]
        return fields

    @property
    def must_hurry(self) -> bool:
        """Whether the next step must be taken before the next heartbeat is due."""
        return self.owned != self.assigned

    def step(self, group: Group, *, is_lost: bool) -> None:
        """Send a heartbeat, and handle its response unless that is lost. Raises KafkaError."""
        self.give_up()
        response = group.heartbeat(self.member_id, self.epoch, **self.request())
        if is_lost:
            self.missed_an_answer = True
        else:
            self.hear(response)

    def leave(self, group: Group, *, for_good: bool) -> None:
        """Send the request. Raises KafkaError."""
        self.owned = set()
        epoch = -1 if for_good or self.instance_id is None else -2
        group.heartbeat(self.member_id, epoch, instance_id=self.instance_id)

    def hear(self, response: Any) -> None:
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self.assigned = {
                (topic.topic_id, number)
                for topic in response.assignment.topic_partitions
                for number in topic.partitions
            }
            # New partitions may be taken at once: the last owner has revoked them.
            self.owned |= self.assigned
            self.has_news = True

    def give_up(self) -> None:
        if self.owned != self.assigned:
            self.owned = set(self.assigned)
            self.has_news = True


AnyClient = Client | ClassicClient


class Churn:
    """A group of clients, a share `classic` of them with the classic protocol, and time."""

    def __init__(self, seed: int, clients: int, classic: float = 0.0) -> None:
        self.random = random.Random(seed)
        self.group = Group()
        self.group.settings = msgspec.structs.replace(self.group.settings, assignment_interval_ms=1_000)
        self.group.set_topics({"a": 40, "b": 17, "c": 3})
        self.reading = Reading(self.group, self.random)
        self.given: dict[tuple[Partition, int], str] = {}
        self.clients = [self._client(number, classic) for number in range(clients)]
        for client in self.clients:
            client.wakes_at = self.group.now_ms + self.random.randrange(30_000)

    def _client(self, number: int, classic: float) -> AnyClient:
        draw = self.random
        topics = draw.choice([["a"], ["a", "b"], ["a", "b", "c"], ["b", "c"]])
        instance_id = f"i{number}" if draw.random() < 0.3 else None
        # The first one keeps the group in the consumer protocol.
        if number and draw.random() < classic:
            return ClassicClient(f"m{number}", topics, is_eager=draw.random() < 0.5)
        return Client(f"m{number}", topics, instance_id, draw.choice([None, None, "uniform", "range"]))

    def run(self, duration_ms: int, mishaps: float, *, produces: bool = True) -> None:
        """Let all clients act for so long; a share of `mishaps` of all actions fails."""
        end_ms = self.group.now_ms + duration_ms
        while True:
            awake = [client for client in self.clients if client.wakes_at is not None]
            client = min(awake, key=lambda each: each.wakes_at or 0, default=None)
            if client is None or client.wakes_at is None or client.wakes_at > end_ms:
                break
            for _ in self.group.pass_time(client.wakes_at - self.group.now_ms):
                self.check()
            if produces:
                self.reading.produce()
            self.reading.read(client)
            self._act(client, mishaps)
            self.reading.follow(client)
            self.check()
        for _ in self.group.pass_time(end_ms - self.group.now_ms):
            self.check()

    def revive(self) -> None:
        """Wake all clients."""
        for client in self.clients:
            if client.wakes_at is None:
                client.start_over()
            client.wakes_at = self.group.now_ms + self.random.randrange(1_000)

    def _act(self, client: AnyClient, mishaps: float) -> None:
        now_ms, draw = self.group.now_ms, self.random
        client.wakes_at = now_ms + HEARTBEAT_MS
        if draw.random() < mishaps:
            self._mishap(client)
            return
        try:
            client.step(self.group, is_lost=draw.random() < mishaps)
        except KafkaError as error:
            if error.code in _START_OVER:
                client.rejoin()
            elif error.code is not ErrorCode.UNRELEASED_INSTANCE_ID:
                raise
            return
        if client.must_hurry:
            client.wakes_at = now_ms + draw.randrange(3_000)

    def _mishap(self, client: AnyClient) -> None:
        now_ms, draw = self.group.now_ms, self.random
        match draw.randrange(4):
            case 0:
                client.wakes_at = now_ms + draw.randrange(120_000)  # frozen, perhaps beyond its session
            case 1:
                self._leave(client, for_good=True)
                client.start_over()
                client.wakes_at = now_ms + draw.randrange(60_000)
            case 2:
                client.wakes_at = None  # died; its believing ends with it
                client.owned = set()
            case 3:
                self._leave(client, for_good=False)
                client.start_over()
                client.wakes_at = now_ms + draw.randrange(10_000)

    def _leave(self, client: AnyClient, *, for_good: bool) -> None:
        try:
            client.leave(self.group, for_good=for_good)
        except KafkaError as error:
            if error.code not in {*_START_OVER, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND}:
                raise

    def check(self) -> None:
        members = self.group.group.group_state.members
        for member in members.values():
            name = member.instance_id or member.member_id
            for topic_id, epochs in member.assigned.items():
                for number, epoch in epochs.items():
                    if epoch == 0:
                        continue  # put aside for a static member that was given it before
                    owner = self.given.setdefault(((topic_id, number), epoch), name)
                    assert owner == name, f"{topic_id!r}-{number} was given to {owner} and {name} in epoch {epoch}"
        believers: dict[Partition, str] = {}
        for client in self.clients:
            if client.member_id in members:
                for partition in client.owned:
                    other = believers.setdefault(partition, client.member_id)
                    assert other == client.member_id, f"{partition}: {other} and {client.member_id}"

    def owners(self) -> dict[Partition, str]:
        return {partition: client.name for client in self.clients for partition in client.owned}

"""The rows of topics that are kept: they equal new ones after every change, and are dropped with what they describe."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import pytest

from odradek.broker.broker import Broker
from odradek.broker.config import BrokerConfig
from odradek.broker.handlers import metadata as handler
from odradek.broker.metadata.administration.topic_names import CONSUMER_OFFSETS
from odradek.broker.metadata.image import BrokerImage, ImageChange, MetadataImage, PartitionImage, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.registration import Installation
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.values import RUNNING, Listener
from odradek.broker.randomness import SeededRandomness
from odradek.broker.request.authorized_operations import NOT_REQUESTED
from odradek.broker.request.context import ConnectionContext, RequestContext
from odradek.broker.request.encoded_topics import MOST_BYTES, EncodedTopics
from odradek.broker.request.services import Services
from odradek.broker.testing.clock import ManualClock
from odradek.protocol.codec import encode
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.protocol.schema import EncodedPart
from tests.effort import cases

LISTENERS = ("PLAINTEXT", "INTERNAL")
NAMES = (CONSUMER_OFFSETS, "a", "b", "orders", "ä" * 100)
VERSIONS = range(14)


class Cluster:
    """The metadata of a broker that has not started: its images are made here."""

    def __init__(self, services: Services, most_bytes: int = MOST_BYTES) -> None:
        self.metadata = Metadata(
            BrokerConfig.load(None, {}),
            InMemoryStore(),
            installation=Installation("c", ("d",), "boot", software="0.0"),
            clock=ManualClock(),
            randomness=SeededRandomness(1),
            on_failure=lambda what, error: pytest.fail(f"{what}: {error}"),
        )
        self.rows = EncodedTopics(self.metadata, most_bytes)
        self.services = dataclasses.replace(services, metadata=self.metadata, encoded_topics=self.rows)

    def publish(self, topics: Iterable[TopicImage], brokers: dict[int, BrokerImage] | None = None) -> None:
        """Replace the topics; the brokers stay if they are None."""
        before = self.metadata.image
        by_name = {topic.name: topic for topic in topics}
        self.metadata.image = after = MetadataImage(
            before.revision + 1,
            topics=by_name,
            topics_by_id={topic.topic_id: topic for topic in by_name.values()},
            brokers=dict(before.brokers) if brokers is None else brokers,
        )
        ids = {*before.topics_by_id, *after.topics_by_id}
        changed = {each for each in ids if before.topics_by_id.get(each) is not after.topics_by_id.get(each)}
        self.metadata.notify(ImageChange(before, after, changed))

    def begin(self, version: int, listener: str, request: MetadataRequest | None = None) -> Any:
        """Return the steps of a request, for all topics by default."""
        connection = ConnectionContext(listener, ("127.0.0.1", 9092), ("127.0.0.1", 40_000))
        context = RequestContext(3, version, 0, None, 0.0, connection)
        return handler.handle(self.services, context, request or MetadataRequest(None))

    def answer(self, version: int, listener: str = "PLAINTEXT", request: MetadataRequest | None = None) -> bytes:
        return bytes(encode(finished(self.begin(version, listener, request)), version))

    def plain_answer(self, version: int, listener: str) -> bytes:
        """Return the answer without encoded rows, made of one that has operations."""
        response = finished(
            self.begin(version, listener, MetadataRequest(None, include_topic_authorized_operations=True))
        )
        for topic in response.topics:
            assert not isinstance(topic, EncodedPart)
            topic.topic_authorized_operations = NOT_REQUESTED
        return bytes(encode(response, version))


def finished(steps: Any) -> MetadataResponse:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        response: MetadataResponse = end.value
        return response


@pytest.fixture
async def services() -> AsyncIterator[Services]:
    async with Broker() as broker:
        yield broker.services


def broker_image(node_id: int, *listeners: str) -> BrokerImage:
    registered = [Listener(name, "PLAINTEXT", "host", 9092) for name in listeners]
    return BrokerImage(node_id, 7, registered, None, RUNNING, "incarnation", 7)


def topic_image(name: str, partitions: int = 1, topic_id: bytes = b"i" * 16) -> TopicImage:
    return TopicImage(name, topic_id, [PartitionImage(1, 3, [1, 2], {1: 7}, 3)] * partitions)


class RandomChanges:
    """Random images, each a few changes away from the one before."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.topics: dict[str, TopicImage] = {}
        self.brokers = {1: broker_image(1, *LISTENERS)}

    def next(self) -> tuple[list[TopicImage], dict[int, BrokerImage]]:
        for _ in range(self.random.randint(1, 3)):
            self.random.choice((self._topic, self._topic, self._deletion, self._broker))()
        return list(self.topics.values()), self.brokers

    def _topic(self) -> None:
        """Create a topic, or change a partition of it, or add some."""
        name = self.random.choice(NAMES)
        topic = self.topics.get(name) or TopicImage(name, self.random.randbytes(16), [])
        partitions = list(topic.partitions)
        if partitions and self.random.random() < 0.5:
            partitions[self.random.randrange(len(partitions))] = self._partition()
        else:
            partitions += [self._partition() for _ in range(self.random.choice((1, 2, 200)))]
        self.topics[name] = msgspec.structs.replace(topic, partitions=partitions)

    def _partition(self) -> PartitionImage:
        replicas = self.random.sample((1, 2, 3, 4), self.random.randint(1, 3))
        leader = self.random.choice((-1, *replicas))
        isr = dict.fromkeys(self.random.sample(replicas, self.random.randint(0, len(replicas))), 7)
        return PartitionImage(leader, self.random.randint(0, 1 << 20), replicas, isr, 0)

    def _deletion(self) -> None:
        self.topics.pop(self.random.choice(NAMES), None)

    def _broker(self) -> None:
        """Start a broker, stop one, or change its listeners."""
        node_id = self.random.randint(1, 4)
        listeners = self.random.sample(LISTENERS, self.random.randint(0, 2))
        self.brokers = {each: broker for each, broker in self.brokers.items() if each != node_id}
        if listeners:
            self.brokers[node_id] = broker_image(node_id, *listeners)


@pytest.mark.parametrize("seed", range(cases(20)))
async def test_kept_rows_are_those_of_the_present_image(services: Services, seed: int) -> None:
    cluster, changes = Cluster(services), RandomChanges(seed)
    for _ in range(6):
        cluster.publish(*changes.next())
        for version in VERSIONS:
            for listener in LISTENERS:
                expected = cluster.plain_answer(version, listener)
                assert cluster.answer(version, listener) == expected
                assert cluster.answer(version, listener) == expected


async def test_a_row_is_encoded_once_while_nothing_of_it_changes(services: Services) -> None:
    cluster = Cluster(services)
    topic, other = topic_image("t"), topic_image("u", topic_id=b"j" * 16)
    cluster.publish([topic, other], {1: broker_image(1, "PLAINTEXT")})
    [first, second] = finished(cluster.begin(12, "PLAINTEXT")).topics

    cluster.publish([topic, topic_image("u", 2, b"j" * 16)])

    [same, changed] = finished(cluster.begin(12, "PLAINTEXT")).topics
    assert same is first
    assert changed is not second
    by_id = MetadataRequest([MetadataRequestTopic(topic.topic_id, None)])
    assert finished(cluster.begin(12, "PLAINTEXT", by_id)).topics == [first]


async def test_rows_are_dropped_with_their_topics(services: Services) -> None:
    cluster = Cluster(services)
    topic = topic_image("t")
    cluster.publish([topic, topic_image("u", topic_id=b"j" * 16)], {1: broker_image(1, "PLAINTEXT")})
    for version in VERSIONS:
        cluster.answer(version)
    size = cluster.rows.size

    cluster.publish([topic])
    assert 0 < cluster.rows.size < size
    cluster.publish([])
    assert cluster.rows.size == 0


async def test_all_rows_are_dropped_when_a_broker_stops(services: Services) -> None:
    cluster = Cluster(services)
    topic = topic_image("t")
    cluster.publish([topic], {1: broker_image(1, "PLAINTEXT"), 2: broker_image(2, "PLAINTEXT")})
    before = cluster.answer(12)

    cluster.publish([topic], {2: broker_image(2, "PLAINTEXT")})

    assert cluster.rows.size == 0
    assert cluster.answer(12) != before


async def test_rows_of_all_versions_take_no_more_than_their_bound(services: Services) -> None:
    cluster = Cluster(services, most_bytes=20_000)
    topics = [topic_image(f"t{number}", 50, number.to_bytes(16, "big")) for number in range(10)]
    cluster.publish(topics, {1: broker_image(1, *LISTENERS)})
    sizes = []
    for version in VERSIONS:
        for listener in LISTENERS:
            assert cluster.answer(version, listener) == cluster.plain_answer(version, listener)
            sizes.append(cluster.rows.size)

    assert max(sizes) <= 20_000
    assert any(sizes)


@pytest.mark.parametrize("stops", [False, True], ids=["topic changes", "broker stops"])
async def test_a_request_that_is_paused_while_the_image_changes_keeps_no_old_row(
    services: Services, stops: bool
) -> None:
    cluster = Cluster(services)
    topic = topic_image("t", 500)
    brokers = {1: broker_image(1, "PLAINTEXT"), 2: broker_image(2, "PLAINTEXT")}
    cluster.publish([topic], brokers)
    paused = cluster.begin(12, "PLAINTEXT")
    for _ in range(250):
        next(paused)

    if stops:
        cluster.publish([topic], {2: brokers[2]})
    else:
        cluster.publish([topic_image("t", 400)])
    finished(paused)

    assert cluster.rows.size == 0
    assert cluster.answer(12) == cluster.plain_answer(12, "PLAINTEXT")


async def test_a_request_that_is_paused_gets_rows_of_its_own_image(services: Services) -> None:
    cluster = Cluster(services)
    topic, other = topic_image("t"), topic_image("u", topic_id=b"j" * 16)
    cluster.publish([topic, other], {1: broker_image(1, "PLAINTEXT")})
    before = cluster.answer(12)
    paused = cluster.begin(12, "PLAINTEXT")
    next(paused)

    cluster.publish([topic, topic_image("u", 2, b"j" * 16)])

    assert cluster.answer(12) != before
    assert bytes(encode(finished(paused), 12)) == before


async def test_two_requests_that_encode_the_same_row_keep_one(services: Services) -> None:
    cluster = Cluster(services)
    cluster.publish([topic_image("t", 500)], {1: broker_image(1, "PLAINTEXT")})
    first, second = (cluster.begin(12, "PLAINTEXT") for _ in range(2))
    for _ in range(250):
        next(first)
        next(second)
    finished(first)
    size = cluster.rows.size
    finished(second)

    assert cluster.rows.size == size
    cluster.publish([])
    assert cluster.rows.size == 0

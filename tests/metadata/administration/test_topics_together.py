"""Topics that are created by one call: few transactions, and an error of one changes nothing for the others."""

from __future__ import annotations

import asyncio

import pytest

from odradek.broker.metadata.administration.topics import NewTopic, create_topics
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.metadata.store.store import MetadataStore, Put
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import Start
from tests.metadata.uncertain import ANSWER, LOSE_ANSWER, LOSE_REQUEST, UncertainStore

THROTTLED = "leader.replication.throttled.replicas"


@pytest.fixture
async def metadata(store: MetadataStore, start: Start) -> Metadata:
    return await start(store)


class Images(list[int]):
    """The number of topics that each later image adds."""

    def __init__(self, metadata: Metadata) -> None:
        metadata.on_change(lambda change: self.append(len(change.after.topics) - len(change.before.topics)))


def named(*names: str) -> list[NewTopic]:
    return [NewTopic(name) for name in names]


def created(outcomes: list[TopicImage | KafkaError]) -> list[str]:
    return [outcome.name for outcome in outcomes if isinstance(outcome, TopicImage)]


def codes(outcomes: list[TopicImage | KafkaError]) -> list[ErrorCode]:
    return [outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE for outcome in outcomes]


async def test_many_topics_are_one_transaction_and_one_image(metadata: Metadata) -> None:
    names = [f"t{number}" for number in range(100)]
    before, images = metadata.image.revision, Images(metadata)

    outcomes = await create_topics(metadata, named(*names))

    assert created(outcomes) == names
    assert [metadata.image.topics[name] for name in names] == outcomes
    shares = 1 if isinstance(metadata.store, SqliteStore) else 3  # etcd allows 128 operations, each topic is three
    assert len(images) == metadata.image.revision - before == shares
    assert sum(images) == 100


async def test_topics_of_all_sizes_are_created_together(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    sizes = [1, 59, 60, 61, 2, 130, 3, 1, 120]

    outcomes = await create_topics(metadata, [NewTopic(f"t{size}-{number}", size) for number, size in enumerate(sizes)])

    assert [len(outcome.partitions) for outcome in outcomes if isinstance(outcome, TopicImage)] == sizes
    assert metadata.image.uncovered == {}


async def test_an_invalid_topic_fails_alone(metadata: Metadata) -> None:
    await create_topics(metadata, named("here", "a.b"))
    images = Images(metadata)

    outcomes = await create_topics(
        metadata,
        [
            NewTopic("first"),
            NewTopic("here"),
            NewTopic("no/name"),
            NewTopic("a_b"),
            NewTopic("none", 0),
            NewTopic("replicas", 1, 2),
            NewTopic("configs", configs={"nope": "1"}),
            NewTopic("x.y"),
            NewTopic("x_y"),
            NewTopic("last", configs={"retention.ms": "5"}),
        ],
    )

    assert codes(outcomes) == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    assert images == [3]
    assert metadata.image.topics["last"].configs == {"retention.ms": "5"}


async def test_of_rivals_that_create_the_same_topics_one_succeeds_with_each(
    shared: InMemoryStore, start: Start
) -> None:
    brokers = [await start(shared, node_id) for node_id in (1, 2, 3)]
    wanted = [[f"t{number}" for number in range(5 * each, 5 * each + 20)] for each in range(3)]

    results = await asyncio.gather(
        *(create_topics(broker, named(*names)) for broker, names in zip(brokers, wanted, strict=True))
    )

    assert sorted(name for outcomes in results for name in created(outcomes)) == sorted(
        {*wanted[0], *wanted[1], *wanted[2]}
    )
    assert {code for outcomes in results for code in codes(outcomes)} == {
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    }


async def test_a_rival_is_charged_once(metadata: Metadata) -> None:
    charged: list[int] = []
    charge = charged.append

    await asyncio.gather(
        create_topics(metadata, [NewTopic("s", 2), NewTopic("t", 3)], charge=charge),
        create_topics(metadata, [NewTopic("t", 3), NewTopic("u", 4)], charge=charge),
    )

    assert sorted(charged) == [2, 3, 3, 4], "also the topic that another was first with: it was valid"


async def test_a_topic_that_is_refused_a_charge_is_not_created(metadata: Metadata) -> None:
    def charge(partitions: int) -> None:
        if partitions > 1:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "")

    outcomes = await create_topics(metadata, [NewTopic("s"), NewTopic("t", 2), NewTopic("u")], charge=charge)

    assert codes(outcomes) == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]
    assert set(metadata.image.topics) == {"s", "u"}


async def test_properties_of_an_earlier_topic_are_removed(metadata: Metadata) -> None:
    await metadata.commit((), (Put(metadata.keys.topic_config("t"), b'{"flush.ms":"1"}'),))

    await create_topics(metadata, named("s", "t"))

    assert metadata.image.topics["t"].configs == {}
    assert metadata.image.topic_configs == {}


async def test_topics_with_large_properties_do_not_share_a_transaction(metadata: Metadata) -> None:
    large = ",".join(f"{number}:1" for number in range(50_000))
    images = Images(metadata)

    await create_topics(
        metadata,
        [NewTopic("s"), NewTopic("t", configs={THROTTLED: large}), NewTopic("u", configs={THROTTLED: large})],
    )

    assert images == [1, 1, 1]


async def test_validation_creates_nothing(metadata: Metadata) -> None:
    before = metadata.image

    outcomes = await create_topics(metadata, [NewTopic("s"), NewTopic("t", 0), NewTopic("u")], validate_only=True)

    assert codes(outcomes) == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS, ErrorCode.NONE]
    assert metadata.image is before


async def test_topics_that_are_not_written_before_an_interruption_are_not_created(
    shared: InMemoryStore, start: Start
) -> None:
    metadata = await start(shared)
    pauses = 0

    async def disconnect_before_the_second_transaction() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 100 + 2:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await create_topics(
            metadata,
            named(*(f"t{number}" for number in range(100))),
            pause=disconnect_before_the_second_transaction,
        )

    assert set(metadata.image.topics) == {f"t{number}" for number in range(40)}


@pytest.mark.parametrize("what", [LOSE_REQUEST, LOSE_ANSWER])
async def test_lost_answers_change_no_outcome(start: Start, what: str) -> None:
    store = UncertainStore(iter([ANSWER] * 4 + [what] * 6))
    metadata = await start(store)

    outcomes = await create_topics(metadata, named(*(f"t{number}" for number in range(100))))

    assert len(created(outcomes)) == 100
    await store.close()

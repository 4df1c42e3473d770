"""Topics that are grown or deleted by one call: few transactions, and an error of one is no other's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from odradek.broker.metadata.administration.alter_configs import Change, alter_topic_configs
from odradek.broker.metadata.administration.topics import (
    Growth,
    Naming,
    NewTopic,
    create_topic,
    create_topics,
    delete_topic,
    delete_topics,
    grow_topic,
    grow_topics,
)
from odradek.broker.metadata.image import ImageChange, TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.sqlite import SqliteStore
from odradek.broker.metadata.store.store import MetadataStore
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import Start
from tests.metadata.uncertain import ANSWER, LOSE_ANSWER, LOSE_REQUEST, UncertainStore

Together = Callable[[Metadata, Sequence[str]], Awaitable[list[TopicImage | KafkaError]]]


@pytest.fixture
async def metadata(store: MetadataStore, start: Start) -> Metadata:
    return await start(store)


class Images(list[int]):
    """The number of partitions that each later image adds, negative if it removes some."""

    def __init__(self, metadata: Metadata) -> None:
        metadata.on_change(self._count)

    def _count(self, change: ImageChange) -> None:
        before, after = (
            sum(len(topic.partitions) for topic in image.topics.values()) for image in (change.before, change.after)
        )
        self.append(after - before)


async def grow_all(metadata: Metadata, names: Sequence[str]) -> list[TopicImage | KafkaError]:
    return await grow_topics(metadata, [Growth(name, 2) for name in names])


async def delete_all(metadata: Metadata, names: Sequence[str]) -> list[TopicImage | KafkaError]:
    return await delete_topics(metadata, [Naming(name) for name in names])


async def create_all(metadata: Metadata, *names: str) -> None:
    await create_topics(metadata, [NewTopic(name) for name in names])


def codes(outcomes: Sequence[TopicImage | KafkaError]) -> list[ErrorCode]:
    return [outcome.code if isinstance(outcome, KafkaError) else ErrorCode.NONE for outcome in outcomes]


def numbered(count: int) -> list[str]:
    return [f"t{number}" for number in range(count)]


async def test_growths_of_many_topics_are_one_transaction_and_one_image(metadata: Metadata) -> None:
    names = numbered(100)
    await create_all(metadata, *names)
    before, images = metadata.image.revision, Images(metadata)

    outcomes = await grow_all(metadata, names)

    assert [outcome.name for outcome in outcomes if isinstance(outcome, TopicImage)] == names
    assert {len(metadata.image.topics[name].partitions) for name in names} == {2}
    shares = 1 if isinstance(metadata.store, SqliteStore) else 3  # etcd allows 128 operations, each topic is three
    assert len(images) == metadata.image.revision - before == shares
    assert sum(images) == 100


async def test_many_topics_are_deleted_in_one_transaction_and_one_image(metadata: Metadata) -> None:
    names = numbered(100)
    await create_all(metadata, "stays", *names)
    last = [metadata.image.topics[name] for name in names]
    before, images = metadata.image.revision, Images(metadata)

    outcomes = await delete_all(metadata, names)

    assert outcomes == last
    assert set(metadata.image.topics) == {"stays"}
    assert set(metadata.image.deleted) == {topic.topic_id for topic in last}
    shares = (
        1 if isinstance(metadata.store, SqliteStore) else 5
    )  # a topic counts four operations, and two keys of its partition
    assert len(images) == metadata.image.revision - before == shares
    assert sum(images) == -100


async def test_an_image_does_not_lose_many_partitions_of_several_topics(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    sizes = [30, 30, 30, 1, 500, 1, 1]
    await create_topics(metadata, [NewTopic(f"t{index}", size) for index, size in enumerate(sizes)])
    images = Images(metadata)

    await delete_all(metadata, numbered(len(sizes)))

    assert images == [-30, -30, -31, -500, -2]


async def test_growths_of_all_sizes_happen_together(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    sizes = [2, 60, 61, 62, 3, 131, 2, 121]
    names = numbered(len(sizes))
    await create_all(metadata, *names)

    outcomes = await grow_topics(metadata, [Growth(name, size) for name, size in zip(names, sizes, strict=True)])

    assert codes(outcomes) == [ErrorCode.NONE] * len(sizes)
    assert [len(metadata.image.topics[name].partitions) for name in names] == sizes
    assert metadata.image.uncovered == {}


async def test_an_invalid_growth_fails_alone(metadata: Metadata) -> None:
    await create_all(metadata, "a", "b", "c", "d", "e")
    images = Images(metadata)

    outcomes = await grow_topics(
        metadata,
        [
            Growth("a", 9_000),
            Growth("missing", 2),
            Growth("b", 1),
            Growth("c", 1_003),  # 1 002 more than the 8 999 of a: one too many
            Growth("d", 3, [[1]]),
            Growth("e", 1_002),
        ],
    )

    assert codes(outcomes) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.NONE,
    ]
    assert sum(images) == 10_000


async def test_a_topic_that_cannot_be_deleted_fails_alone(metadata: Metadata) -> None:
    await create_all(metadata, "a", "b", "c")
    topic_id = metadata.image.topics["b"].topic_id

    outcomes = await delete_topics(
        metadata,
        [Naming("a"), Naming("missing"), Naming(None, b"x" * 16), Naming(None, topic_id), Naming("b"), Naming("c")],
    )

    assert codes(outcomes) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    assert metadata.image.topics == {}


async def test_of_rivals_that_delete_the_same_topics_one_succeeds_with_each(
    shared: InMemoryStore, start: Start
) -> None:
    brokers = [await start(shared, node_id) for node_id in (1, 2, 3)]
    await create_all(brokers[0], *numbered(30))
    for broker in brokers:
        await broker.wait_for_revision(brokers[0].image.revision)
    wanted = [numbered(30)[5 * each : 5 * each + 20] for each in range(3)]

    results = await asyncio.gather(
        *(delete_all(broker, names) for broker, names in zip(brokers, wanted, strict=True)),
    )

    deleted = [outcome.name for outcomes in results for outcome in outcomes if isinstance(outcome, TopicImage)]
    assert sorted(deleted) == sorted(numbered(30))
    assert {code for outcomes in results for code in codes(outcomes)} == {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_of_rivals_that_grow_the_same_topics_one_succeeds_with_each(shared: InMemoryStore, start: Start) -> None:
    brokers = [await start(shared, node_id) for node_id in (1, 2, 3)]
    await create_all(brokers[0], *numbered(30))
    for broker in brokers:
        await broker.wait_for_revision(brokers[0].image.revision)
    wanted = [numbered(30)[5 * each : 5 * each + 20] for each in range(3)]

    results = await asyncio.gather(
        *(grow_all(broker, names) for broker, names in zip(brokers, wanted, strict=True)),
    )

    grown = [outcome.name for outcomes in results for outcome in outcomes if isinstance(outcome, TopicImage)]
    assert sorted(grown) == sorted(numbered(30))
    assert {code for outcomes in results for code in codes(outcomes)} == {ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS}


async def test_a_conflict_of_one_topic_fails_no_other(shared: InMemoryStore, start: Start) -> None:
    first, second = await start(shared, 1), await start(shared, 2)
    await create_all(first, *numbered(10))
    await second.wait_for_revision(first.image.revision)

    _, grown = await asyncio.gather(grow_topic(first, "t4", 5), grow_all(second, numbered(10)))
    _, deleted = await asyncio.gather(delete_topic(first, name="t4"), delete_all(second, numbered(10)))

    assert [code for code in codes(grown) if code != ErrorCode.NONE] in ([], [ErrorCode.INVALID_PARTITIONS])
    assert len(codes(deleted)) == 10
    refused = [outcome.detail for outcome in deleted if isinstance(outcome, KafkaError)]
    assert refused == ["This server does not host this topic-partition. There is no topic 't4'."]
    assert second.image.topics == {}


async def test_a_rival_is_charged_once(metadata: Metadata) -> None:
    await create_all(metadata, "s", "t", "u")
    charged: list[int] = []

    await asyncio.gather(
        grow_topics(metadata, [Growth("s", 2), Growth("t", 3)], charge=charged.append),
        grow_topics(metadata, [Growth("t", 4), Growth("u", 5)], charge=charged.append),
    )
    assert sorted(charged) == [1, 2, 3, 4], "also the topic that another was first with: it was valid"
    charged.clear()
    await asyncio.gather(
        delete_topics(metadata, [Naming("s"), Naming("t")], charge=charged.append),
        delete_topics(metadata, [Naming("t"), Naming("u")], charge=charged.append),
    )
    assert sorted(charged) == [2, 4, 4, 5]


@pytest.mark.parametrize("together", [grow_topics, delete_topics])
async def test_a_topic_that_is_refused_a_charge_stays_as_it_is(metadata: Metadata, together: object) -> None:
    await create_all(metadata, "s", "t", "u")
    charged = 0

    def charge(partitions: int) -> None:
        nonlocal charged
        charged += partitions
        if charged == 2:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "")

    if together is grow_topics:
        outcomes = await grow_topics(metadata, [Growth(name, 2) for name in "stu"], charge=charge)
    else:
        outcomes = await delete_topics(metadata, [Naming(name) for name in "stu"], charge=charge)

    assert codes(outcomes) == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]
    left = {name: len(topic.partitions) for name, topic in metadata.image.topics.items()}
    assert left == ({"s": 2, "t": 1, "u": 2} if together is grow_topics else {"t": 1})


async def test_validation_grows_nothing(metadata: Metadata) -> None:
    await create_all(metadata, "s", "t")
    before = metadata.image

    outcomes = await grow_topics(metadata, [Growth("s", 2), Growth("t", 1)], validate_only=True)

    assert codes(outcomes) == [ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS]
    assert metadata.image is before


async def test_topics_that_are_not_written_before_an_interruption_stay(shared: InMemoryStore, start: Start) -> None:
    metadata = await start(shared)
    await create_all(metadata, *numbered(100))
    pauses = 0

    async def disconnect_before_the_second_transaction() -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 100 + 2:
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await delete_topics(
            metadata, [Naming(name) for name in numbered(100)], pause=disconnect_before_the_second_transaction
        )

    assert set(metadata.image.topics) == set(numbered(100)[20:])


async def test_properties_that_change_meanwhile_are_deleted_with_their_topic(metadata: Metadata) -> None:
    await create_all(metadata, "s", "t")

    await asyncio.gather(
        alter_topic_configs(metadata, "t", [Change("retention.ms", "5")]), delete_all(metadata, ["s", "t"])
    )

    assert metadata.image.topics == {}
    assert metadata.image.topic_configs == {}


@pytest.mark.parametrize("together", [grow_all, delete_all])
@pytest.mark.parametrize("what", [LOSE_REQUEST, LOSE_ANSWER])
async def test_lost_answers_change_no_outcome(start: Start, what: str, together: Together) -> None:
    store = UncertainStore(iter([ANSWER] * 7 + [what] * 6))
    metadata = await start(store)
    await create_all(metadata, *numbered(100))

    assert codes(await together(metadata, numbered(100))) == [ErrorCode.NONE] * 100
    assert {len(topic.partitions) for topic in metadata.image.topics.values()} == (
        {2} if together is grow_all else set()
    )
    await store.close()


async def test_a_deleted_topic_can_be_created_again_at_once(metadata: Metadata) -> None:
    old = await create_topic(metadata, "t")

    await delete_all(metadata, ["t"])

    assert (await create_topic(metadata, "t")).topic_id != old.topic_id

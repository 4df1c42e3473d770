"""Topics whose brokers are workers of machines: where replicas and leaders are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from odradek.broker.metadata.administration.placement import Candidates
from odradek.broker.metadata.administration.topics import NewTopic, create_topic, create_topics, grow_topic
from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.broker.metadata.leaders.requested_reassignments import WantedReplicas, reassign
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import Start, until

StartWorkers = Callable[..., Awaitable[list[Metadata]]]


@pytest.fixture
async def start_workers(shared: InMemoryStore, start: Start) -> StartWorkers:
    """Start the metadata of the brokers with these node ids; return those, each with the image of all."""

    async def start_workers(hosts: dict[int, str], **overrides: str) -> list[Metadata]:
        started = [await start(shared, node_id, host=host, **overrides) for node_id, host in hosts.items()]
        for each in started:
            await until(each, lambda image: len(image.brokers) == len(hosts))
        return started

    return start_workers


def leaders(image: MetadataImage) -> Counter[int]:
    return Counter(partition.leader for topic in image.topics.values() for partition in topic.partitions)


async def test_topics_of_one_partition_are_led_by_all_workers(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers(dict.fromkeys((1, 1001, 2001, 3001), "host"))
    await create_topics(metadata, [NewTopic("three", 3), NewTopic("assigned", assignments={0: [3001]})])

    names = [f"t{number}" for number in range(1000)]
    outcomes = await create_topics(
        metadata, [*map(NewTopic, names[:500]), NewTopic("s", 4), *map(NewTopic, names[500:])]
    )

    assert all(isinstance(outcome, TopicImage) for outcome in outcomes)
    assert leaders(metadata.image) == {1: 252, 1001: 252, 2001: 252, 3001: 252}
    for name in ("u", "v", "w", "x"):
        await create_topic(metadata, name)
    assert leaders(metadata.image) == {1: 253, 1001: 253, 2001: 253, 3001: 253}
    assert [metadata.image.topics[name].partitions[0].leader for name in "uvwx"] == [1, 1001, 2001, 3001]


async def test_partitions_of_one_topic_are_led_by_all_workers(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers(dict.fromkeys((1, 1001), "host"))
    await create_topic(metadata, "busy", 1)

    topic = await create_topic(metadata, "t", 4)
    await grow_topic(metadata, "t", 6)

    assert [partition.leader for partition in topic.partitions] == [1, 1001, 1, 1001]
    assert [partition.leader for partition in metadata.image.topics["t"].partitions[4:]] == [1, 1001]


async def test_topics_of_one_partition_stay_on_the_first_broker_without_workers(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers({1: "", 2: "", 1001: ""})

    await create_topics(metadata, [NewTopic(f"t{number}") for number in range(6)])

    assert leaders(metadata.image) == {1: 6}


async def test_the_second_replica_is_on_another_host(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers({1: "a", 1001: "a", 2: "b", 1002: "b"})

    outcomes = await create_topics(metadata, [NewTopic(f"t{number}", 1, 2) for number in range(4)])

    placed = [outcome.partitions[0].replicas for outcome in outcomes if isinstance(outcome, TopicImage)]
    assert placed == [[1, 2], [1001, 1002], [1, 2], [1001, 1002]]


async def _refused(awaitable: Awaitable[object]) -> KafkaError:
    with pytest.raises(KafkaError, match=r"workers of one host.*workers\.count\.as\.brokers") as caught:
        await awaitable
    return caught.value


async def test_one_host_has_one_replica(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers(dict.fromkeys((1, 1001, 2001), "host"))

    refused = [
        await _refused(create_topic(metadata, "t", 1, 2)),
        await _refused(create_topic(metadata, "t", assignments={0: [1, 1001]})),
    ]

    assert [each.code for each in refused] == [
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ]
    assert metadata.image.topics == {}


async def test_new_partitions_have_no_second_replica_on_a_host(start_workers: StartWorkers) -> None:
    first, _, third, _ = await start_workers({1: "a", 1001: "a", 2: "b", 1002: "b"})
    await create_topic(first, "t", 1, 2)

    refused = await _refused(grow_topic(first, "t", 2, [[1, 1001]]))

    assert refused.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    await grow_topic(first, "t", 2, [[1002, 1001]])
    await until(third, lambda image: "t" in image.topics and len(image.topics["t"].partitions) == 2)


async def test_workers_that_are_down_count_with_their_host(start_workers: StartWorkers) -> None:
    first, second, third = await start_workers({1: "a", 1001: "a", 2: "b"})
    await third.stop(leaves=True)
    await second.stop(leaves=True)
    await until(first, lambda image: image.brokers.keys() == {1})

    topic = await create_topic(first, "t", 2, 2)

    assert [partition.replicas for partition in topic.partitions] == [[1, 2], [1, 2]]
    refused = await _refused(create_topic(first, "u", 1, 3))
    assert "the 3 known brokers run on 2 hosts" in str(refused.detail)
    assert Candidates.of(first.image).hosts == {1: "a", 1001: "a", 2: "b"}


async def test_workers_that_count_as_brokers_have_all_replicas(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers(dict.fromkeys((1, 1001, 2001), "host"), workers_count_as_brokers="true")

    topic = await create_topic(metadata, "t", 1, 3)
    assigned = await create_topic(metadata, "u", assignments={0: [1001, 1]})
    again = await create_topic(metadata, "v")

    assert topic.partitions[0].replicas == [1, 1001, 2001]
    assert assigned.partitions[0].replicas == [1001, 1]
    assert again.partitions[0].replicas == [2001], "still the worker that leads least"
    assert await reassign(metadata, [WantedReplicas("u", 0, [1, 1001, 2001])], changes_factor=True) == [None]


async def test_a_reassignment_puts_no_second_replica_on_a_host(start_workers: StartWorkers) -> None:
    [metadata, *_] = await start_workers({1: "a", 1001: "a", 2: "b", 1002: "b"})
    await create_topic(metadata, "t", 2, 2)

    outcomes = await reassign(
        metadata, [WantedReplicas("t", 0, [1, 1001]), WantedReplicas("t", 1, [1002, 1001])], changes_factor=False
    )

    assert [None if each is None else each.code for each in outcomes] == [ErrorCode.INVALID_REPLICA_ASSIGNMENT, None]
    assert metadata.image.topics["t"].partitions[1].adding_replicas == [1002]


async def test_replicas_that_share_a_host_already_may_move_but_not_increase(
    shared: InMemoryStore, start: Start, start_workers: StartWorkers
) -> None:
    hosts = {1: "a", 1001: "a", 2001: "a", 2: "b", 1002: "b"}
    [metadata, *_] = await start_workers(hosts, workers_count_as_brokers="true")
    for name in ("t", "u", "v"):
        await create_topic(metadata, name, assignments={0: [1, 1001]})
    strict = await start(shared, 3)

    outcomes = await reassign(
        strict,
        [
            WantedReplicas("t", 0, [2, 1002]),
            WantedReplicas("u", 0, [1, 2]),
            WantedReplicas("v", 0, [1, 1001, 2001]),
        ],
        changes_factor=True,
    )

    assert [None if each is None else each.code for each in outcomes] == [
        None, None, ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    ]  # fmt: skip

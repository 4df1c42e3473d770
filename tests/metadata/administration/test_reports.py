"""Changes of topics are reported as soon as they are written, and when the store may have written them."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from odradek.broker.metadata.administration.alter_configs import Change, alter_topic_configs
from odradek.broker.metadata.administration.topics import (
    Growth,
    Naming,
    NewTopic,
    create_topic,
    create_topics,
    delete_topics,
    grow_topics,
)
from odradek.broker.metadata.image import TopicImage
from odradek.broker.metadata.metadata import Metadata
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.time_limit import time_limit
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.metadata.conftest import Start
from tests.metadata.uncertain import FULL, UNREACHABLE, UncertainStore


class Reports(list[tuple[str, int, ErrorCode]]):
    """The name, the number of partitions and the error of each reported topic."""

    def __call__(self, topic: TopicImage, error: KafkaError | None) -> None:
        self.append((topic.name, len(topic.partitions), ErrorCode.NONE if error is None else error.code))


@pytest.fixture
async def metadata(shared: InMemoryStore, start: Start) -> Metadata:
    return await start(shared)


async def test_written_changes_are_reported(metadata: Metadata) -> None:
    reports = Reports()
    await create_topics(metadata, [NewTopic("a"), NewTopic("-/"), NewTopic("b", 2)], report=reports)
    await create_topics(metadata, [NewTopic("a"), NewTopic("c")], report=reports)
    await create_topics(metadata, [NewTopic("d")], validate_only=True, report=reports)
    await grow_topics(metadata, [Growth("a", 3), Growth("b", 2)], report=reports)
    await grow_topics(metadata, [Growth("a", 9)], validate_only=True, report=reports)
    for validate_only in (True, False):
        changes = [Change("retention.ms", "1000")]
        await alter_topic_configs(metadata, "c", changes, validate_only=validate_only, report=reports)
    await delete_topics(metadata, [Naming("a"), Naming("missing"), Naming("b")], report=reports)
    assert reports == [(name, partitions, ErrorCode.NONE) for name, partitions in (
        ("a", 1), ("b", 2), ("c", 1), ("a", 3), ("c", 1), ("a", 3), ("b", 2),
    )]  # fmt: skip


async def test_topics_that_are_written_when_the_client_goes_are_reported(metadata: Metadata) -> None:
    class Gone(Exception):  # noqa: N818 - the client
        pass

    async def pause() -> None:
        if len(metadata.image.topics):
            raise Gone

    reports = Reports()
    with pytest.raises(Gone):
        await create_topics(metadata, [NewTopic(f"t{number}") for number in range(100)], pause=pause, report=reports)
    assert 0 < len(reports) < 100
    assert {name for name, _, _ in reports} == metadata.image.topics.keys()


async def test_changes_with_an_unknown_outcome_are_reported_and_others_that_failed_are_not(start: Start) -> None:
    store, reports = UncertainStore(iter(())), Reports()
    metadata = await start(store)
    await create_topic(metadata, "a")
    store.script = iter([FULL])
    await create_topics(metadata, [NewTopic("full")], report=reports)

    store.script = chain(repeat(UNREACHABLE, 10**6))
    with time_limit(500):
        await create_topics(metadata, [NewTopic("b")], report=reports)
        await delete_topics(metadata, [Naming("a")], report=reports)
        with pytest.raises(KafkaError):
            await alter_topic_configs(metadata, "a", [Change("retention.ms", "1000")], report=reports)
    store.script = iter(())
    await store.close()

    assert reports == [(name, 1, ErrorCode.REQUEST_TIMED_OUT) for name in ("b", "a", "a")]

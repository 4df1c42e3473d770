from __future__ import annotations

import base64

from odradek.broker.coordinator.consumer_group.subscription import metadata_hash
from odradek.broker.metadata.image import BrokerImage, MetadataImage, PartitionImage, TopicImage


def image(topics: dict[str, tuple[str, int]], rack: str | None = None) -> MetadataImage:
    partition = PartitionImage(1, 0, [1], {1: 1}, 0)
    return MetadataImage(
        topics={
            name: TopicImage(name, base64.urlsafe_b64decode(f"{topic_id}=="), [partition] * count)
            for name, (topic_id, count) in topics.items()
        },
        brokers={1: BrokerImage(1, 1, [], rack, "running", "x", 0)},
    )


TOPICS = {"t0": ("3GaKF-WfRTm56SLnfnf6uQ", 3), "t1": ("LZ58WtdyRwCXwIhFsvYvsA", 3)}


def test_the_hash_of_a_groups_topics_is_kafkas() -> None:
    # Apache Kafka 4.3.1 stored these for groups that read one and both of the topics.
    assert metadata_hash(["t0"], image(TOPICS)) == -1407329945740304984
    assert metadata_hash(["t1", "t0"], image(TOPICS)) == -1134782831521206524


def test_topics_that_do_not_exist_do_not_change_the_hash() -> None:
    assert metadata_hash([], image(TOPICS)) == 0
    assert metadata_hash(["nowhere"], image(TOPICS)) == 0
    assert metadata_hash(["t0", "nowhere"], image(TOPICS)) == metadata_hash(["t0"], image(TOPICS))


def test_more_partitions_another_rack_and_a_recreated_topic_change_the_hash() -> None:
    hashes = [
        metadata_hash(["t0"], image(TOPICS)),
        metadata_hash(["t0"], image({"t0": (TOPICS["t0"][0], 4)})),
        metadata_hash(["t0"], image({"t0": (TOPICS["t1"][0], 3)})),
        metadata_hash(["t0"], image(TOPICS, rack="r1")),
    ]
    assert len(set(hashes)) == len(hashes)

"""Changes of the cluster image by responses to Metadata."""

from __future__ import annotations

from odradek.client.config import Address
from odradek.client.network.cluster_image import ClusterImage
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID_A, ID_B = b"a" * 16, b"b" * 16


def answer(leader: int, epoch: int, topic_id: bytes = ID_A, error: int = 0, name: str = "t") -> MetadataResponse:
    partition = MetadataResponsePartition(0, 0, leader, epoch, [1, 2], [1])
    return MetadataResponse(
        brokers=[MetadataResponseBroker(1, "one", 1), MetadataResponseBroker(2, "two", 2)],
        topics=[MetadataResponseTopic(error, name, topic_id, False, [] if error else [partition])],
    )


def test_a_later_epoch_replaces_the_leader_and_an_earlier_one_does_not() -> None:
    image = ClusterImage().merge(answer(1, 5))
    assert image.merge(answer(2, 4)).partition("t", 0) == image.partition("t", 0)
    moved = image.merge(answer(2, 6)).partition("t", 0)
    assert moved is not None
    assert (moved.leader, moved.leader_epoch) == (2, 6)


def test_epochs_restart_with_a_recreated_topic() -> None:
    image = ClusterImage().merge(answer(1, 5)).merge(answer(2, 0, ID_B))
    partition = image.partition("t", 0)
    assert partition is not None
    assert (partition.leader, partition.leader_epoch) == (2, 0)
    assert image.topics["t"].topic_id == ID_B


def test_topics_that_are_not_in_a_response_stay() -> None:
    image = ClusterImage().merge(answer(1, 0)).merge(answer(1, 0, name="other"))
    assert set(image.topics) == {"t", "other"}


def test_a_deleted_topic_is_removed_and_one_with_another_error_stays() -> None:
    image = ClusterImage().merge(answer(1, 0))
    assert "t" not in image.merge(answer(1, 0, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)).topics
    troubled = image.merge(answer(1, 0, error=ErrorCode.LEADER_NOT_AVAILABLE))
    assert "t" in troubled.topics
    assert troubled.errors == {"t": ErrorCode.LEADER_NOT_AVAILABLE}


def test_a_new_leader_is_stored_only_with_a_later_epoch_and_a_known_address() -> None:
    image = ClusterImage().merge(answer(1, 5))
    assert image.with_leader("t", 0, 2, 5) is image
    assert image.with_leader("t", 0, 9, 6) is image
    assert image.with_leader("t", 7, 2, 6) is image
    partition = image.with_leader("t", 0, 2, 6).partition("t", 0)
    assert partition is not None
    assert partition.leader == 2


def test_a_broker_is_stored_only_with_another_address() -> None:
    image = ClusterImage().merge(answer(1, 5))
    assert image.with_brokers([(1, Address("one", 1))]) is image
    assert image.with_brokers([(3, Address("three", 3))]).brokers[3] == ("three", 3)

"""The table of `checks`: the offset commits and fetches that are refused."""

from __future__ import annotations

import pytest

from odradek.broker.coordinator.group_type import Committer
from odradek.protocol.errors import KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tests.coordinator.consumer_group.transcript import Group


@pytest.fixture
def group() -> Group:
    """A member in epoch 4 that has had a-0 since epoch 2 and b-0 since epoch 4."""
    group = Group()
    group.set_topics({"a": 2, "b": 1})
    group.settings = type(group.settings)(assignment_interval_ms=0)
    group.heartbeat("m1", 0, rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["a"])
    group.heartbeat("m2", 0, rebalance_timeout_ms=1, topic_partitions=[], subscribed_topic_names=["a"])
    group.heartbeat("m1", 2, subscribed_topic_names=["a", "b"])
    group.heartbeat("m1", 2, topic_partitions=[TopicPartitions(group.topic_id("a"), [0])])
    return group


def commit(group: Group, committer: Committer, *partitions: tuple[str, int]) -> str:
    try:
        group.group.check_commit(committer, partitions)
    except KafkaError as error:
        return f"{error.code.name}: {error.detail}"
    return "taken"


def member(epoch: int, member_id: str = "m1", version: int = 9) -> Committer:
    return Committer(member_id, None, epoch, version, False)


OUTSIDE = Committer("", None, -1, 9, False)


def test_a_client_outside_may_commit_to_an_empty_group_only(group: Group) -> None:
    assert commit(Group(), OUTSIDE, ("a", 0)) == "taken"
    assert commit(group, OUTSIDE, ("a", 0)) == "UNKNOWN_MEMBER_ID: Member  is not a member of group g."


def test_a_transaction_may_commit_without_a_member(group: Group) -> None:
    assert commit(group, Committer("", None, -1, 3, True), ("a", 0)) == "taken"


def test_a_member_may_commit_in_its_epoch_whatever_it_owns(group: Group) -> None:
    assert commit(group, member(4), ("a", 0), ("a", 1)) == "taken"


def test_an_older_epoch_may_commit_partitions_that_the_member_had_then(group: Group) -> None:
    assert commit(group, member(2), ("a", 0)) == "taken"
    assert commit(group, member(2), ("b", 0)) == (
        "STALE_MEMBER_EPOCH: Received member epoch 2 is older than assignment epoch 4 for partition b-0."
    )
    assert commit(group, member(3), ("a", 1)) == (
        "STALE_MEMBER_EPOCH: Partition a-1 is not assigned or pending revocation for member."
    )


def test_a_later_epoch_and_a_version_without_epochs_are_refused(group: Group) -> None:
    assert commit(group, member(5), ("a", 0)) == (
        "STALE_MEMBER_EPOCH: Received member epoch 5 is newer than current member epoch 4."
    )
    assert commit(group, member(4, version=8), ("a", 0)) == (
        "UNSUPPORTED_VERSION: OffsetCommit version 9 or above must be used by members using the consumer group protocol"
    )


def test_a_member_may_fetch_in_its_epoch_and_a_client_outside_always(group: Group) -> None:
    group.group.check_fetch(None, -1)
    group.group.check_fetch("m1", 4)
    with pytest.raises(KafkaError, match="epoch 3 does not match the expected member epoch 4"):
        group.group.check_fetch("m1", 3)
    with pytest.raises(KafkaError, match="Member m9 is not a member of group g"):
        group.group.check_fetch("m9", 3)

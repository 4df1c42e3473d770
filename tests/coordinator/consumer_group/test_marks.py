"""What a consumer group remembers beside its records, when those cannot be written or its expressions not resolved."""

from __future__ import annotations

import pytest

from odradek.broker.coordinator.classic_group.events import Join
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, WorkFailed
from odradek.protocol.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.stored_records.consumer_protocol import ConsumerProtocolSubscription
from tests.coordinator.consumer_group.transcript import Group


@pytest.fixture
def group() -> Group:
    """A group in a cluster of one topic, with nobody in it."""
    group = Group()
    group.set_topics({"t": 1})
    return group


def join(group: Group, member_id: str, pattern: str) -> Effects:
    """The effects of a member's first heartbeat, which nobody has carried out."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex=pattern,
        topic_partitions=[],
    )
    return group.group.handle(ConsumerHeartbeat(PendingReply(), request, "", "c", "/h"), group.now_ms)


def written(group: Group, effects: Effects) -> None:
    group.take(effects)
    group.group.append_completed(effects.follow_up, None, group.now_ms)


def not_written(group: Group, effects: Effects) -> None:
    group.group.append_completed(effects.follow_up, ErrorCode.COORDINATOR_NOT_AVAILABLE, group.now_ms)


def test_expressions_are_resolved_again_after_the_work_failed(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    assert join(group, "a", "t.*").work is None  # it is under way

    group.handle(WorkFailed())

    assert join(group, "a", "t.*").work is not None


def test_expressions_are_resolved_again_if_the_heartbeat_that_asked_for_it_is_not_written(group: Group) -> None:
    not_written(group, join(group, "a", "t.*"))

    assert join(group, "a", "t.*").work is not None


def test_a_heartbeat_that_is_not_written_does_not_hide_that_expressions_are_being_resolved(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    group.set_topics({"t": 2})  # so that the next heartbeat has marks to move

    not_written(group, join(group, "b", "u.*"))

    assert join(group, "b", "u.*").work is None


def test_a_change_of_topics_is_looked_at_again_if_what_came_of_it_is_not_written(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    group.handle(group.work())
    group.set_topics({"t": 2})
    epoch = group.group.described().group_epoch
    not_written(group, join(group, "a", "t.*"))

    written(group, join(group, "a", "t.*"))

    assert group.group.described().group_epoch == epoch + 1


def test_a_change_of_topics_is_not_forgotten_over_a_member_that_is_only_given_an_id(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    group.handle(group.work())
    group.set_topics({"t": 2})
    epoch = group.group.described().group_epoch
    protocols = (("range", b"\0\1" + bytes(encode(ConsumerProtocolSubscription(["t"]), 1))),)
    classic = Join(PendingReply(), "", "b", None, "c", "/h", 30_000, 60_000, "consumer", protocols, "", True, True)
    ((_, response),) = group.handle(classic).replies
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED

    written(group, join(group, "a", "t.*"))

    assert group.group.described().group_epoch == epoch + 1

"""The marks of a consumer group when its records cannot be written or its expressions not be resolved."""

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
    """An empty group in a cluster of one topic."""
    group = Group()
    group.set_topics({"t": 1})
    return group


def join(group: Group, member_id: str, pattern: str) -> Effects:
    """Return the effects of a member's first heartbeat, without carrying them out."""
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


def test_expressions_are_resolved_again_if_the_first_heartbeat_cannot_be_written(group: Group) -> None:
    not_written(group, join(group, "a", "t.*"))

    assert join(group, "a", "t.*").work is not None


def test_a_heartbeat_that_cannot_be_written_does_not_start_a_second_resolution(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    group.set_topics({"t": 2})  # so that the next heartbeat has marks to move

    not_written(group, join(group, "b", "u.*"))

    assert join(group, "b", "u.*").work is None


def test_a_change_of_topics_is_compared_again_if_the_records_cannot_be_written(group: Group) -> None:
    written(group, join(group, "a", "t.*"))
    group.handle(group.work())
    group.set_topics({"t": 2})
    epoch = group.group.described().group_epoch
    not_written(group, join(group, "a", "t.*"))

    written(group, join(group, "a", "t.*"))

    assert group.group.described().group_epoch == epoch + 1


def test_a_member_that_only_gets_an_id_does_not_clear_the_mark_of_changed_topics(group: Group) -> None:
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

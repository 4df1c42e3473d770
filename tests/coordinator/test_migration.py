"""The conversion of groups with members to the other protocol: records, replies, refusals."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from odradek.broker.coordinator.classic_group.events import Heartbeat, Join, Leave, Leaving, Sync
from odradek.broker.coordinator.classic_group.rebalance import ClassicSettings
from odradek.broker.coordinator.consumer_group.consumer_protocol import write_assignment
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat, ExpressionsResolved
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.group_type import Conversion
from odradek.broker.coordinator.migration import Migration
from odradek.broker.coordinator.runtime.events import Effects, PendingReply, TimerExpired
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.metadata.image import MetadataImage, PartitionImage, TopicImage
from odradek.protocol.codec import encode
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.protocol.stored_records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

TOPIC_ID = b"t" * 16
TOPIC = TopicImage("t", TOPIC_ID, [PartitionImage(1, 0, [1], {1: 1}, 0)] * 4)
IMAGE = MetadataImage(topics={"t": TOPIC}, topics_by_id={TOPIC_ID: TOPIC})
SUBSCRIPTION = b"\0\1" + bytes(encode(ConsumerProtocolSubscription(["t"]), 1))


class Place:
    """A group of either type, its log, and the clock."""

    def __init__(self, **settings: Any) -> None:
        self.settings = ConsumerGroupSettings(assignment_interval_ms=0, **settings)
        classic = ClassicSettings(initial_rebalance_delay_ms=0)
        self.migration = Migration(lambda _: self.settings, classic, lambda: IMAGE)
        self.group: Any = self.migration.classic_group("g", 0)
        self.log: list[CoordinatorRecord] = []
        self.now_ms = 1

    def take(self, effects: Effects) -> list[Any]:
        """Carry out the effects as the coordinator does; return the replies."""
        self.log += effects.records
        if effects.replay_records:
            for record in effects.records:
                self.group.replay(record)
        self.group = effects.new_group if isinstance(effects, Conversion) else self.group
        replies = [reply for _, reply in effects.replies]
        if effects.follow_up is not None:
            replies += self.take(self.group.append_completed(effects.follow_up, None, 0))
        return replies

    def handle(self, event: Any) -> list[Any]:
        return self.take(self.group.handle(event, self.now_ms))

    def join(
        self,
        member_id: str,
        metadata: bytes = SUBSCRIPTION,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
    ) -> list[Any]:
        protocols = (("range", metadata),)
        known = "" if member_id not in self.known() else member_id
        return self.handle(
            Join(
                PendingReply(),
                known,
                member_id,
                instance_id,
                "c",
                "/h",
                30_000,
                60_000,
                protocol_type,
                protocols,
                "",
                False,
                True,
            )
        )

    def known(self) -> set[str]:
        members = self.group.members if self.group.group_type == "classic" else self.group.group_state.members.values()
        return {member.member_id for member in members}

    def form(self, assignment: bytes, **fields: Any) -> None:
        """One classic member, `old`, that was assigned this in generation 1."""
        self.join("old", **fields)
        self.handle(TimerExpired(("join", "")))
        self.handle(Sync(PendingReply(), 1, "old", None, None, None, {"old": assignment}))

    def heartbeat(self, member_id: str, epoch: int = 0, instance_id: str | None = None) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance_id,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        return self.handle(ConsumerHeartbeat(PendingReply(), request, "", "c", "/h"))


ALL_FOUR = write_assignment({TOPIC_ID: range(4)}, IMAGE, SUBSCRIPTION)


def subscription_of_owner(partitions: list[int]) -> bytes:
    subscription = ConsumerProtocolSubscription(["t"], owned_partitions=[TopicPartition("t", partitions)])
    return b"\0\1" + bytes(encode(subscription, 1))


def test_members_of_an_upgraded_group_keep_their_partitions() -> None:
    place = Place()
    place.form(ALL_FOUR)
    (joined,) = place.heartbeat("new")
    assert place.group.group_type == "consumer"
    assert (joined.error_code, joined.member_epoch) == (0, 2)
    described = {member.member_id: member for member in place.group.described().members}
    assert described["old"].assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert described["old"].member_epoch == 1
    assert [member.member_type for member in described.values()] == [0, 1]


def test_a_member_that_waits_for_its_generation_must_rejoin() -> None:
    place = Place()
    place.form(ALL_FOUR)
    assert place.join("second") == []
    refused, joined = place.heartbeat("new")
    assert refused.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert joined.error_code == ErrorCode.NONE
    assert place.known() == {"old", "second", "new"}


def test_the_group_is_downgraded_when_its_last_member_of_the_consumer_protocol_leaves() -> None:
    place = Place()
    place.form(ALL_FOUR)
    place.heartbeat("new")
    place.heartbeat("new", -1)
    assert place.group.group_type == "classic"
    assert place.group.state == "PreparingRebalance"
    assert place.known() == {"old"}


def test_a_group_is_loaded_with_its_last_protocol() -> None:
    place = Place()
    place.form(ALL_FOUR)
    place.heartbeat("new")
    reloaded = place.migration.consumer_group("g", 0)
    for record in place.log:
        if record.record_type != 2:
            reloaded.replay(record)
    assert reloaded.described() == place.group.described()
    place.heartbeat("new", -1)
    assert [record.record_type for record in place.log[-2:]] == [3, 2]
    assert [record.value is None for record in place.log[-2:]] == [True, False]


def test_a_group_that_may_not_be_downgraded_stays_a_consumer_group() -> None:
    place = Place(migration_policy="UPGRADE")
    place.form(ALL_FOUR)
    place.heartbeat("new")
    place.heartbeat("new", -1)
    assert place.group.group_type == "consumer"
    assert place.known() == {"old"}


@pytest.mark.parametrize("policy", ["disabled", "Downgrade"])
def test_an_upgrade_that_is_not_allowed_is_refused(policy: str) -> None:
    place = Place(migration_policy=policy)
    place.form(ALL_FOUR)
    with pytest.raises(KafkaError, match="because online upgrade is disabled") as refusal:
        place.heartbeat("new")
    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert place.group.group_type == "classic"


def test_expressions_resolved_for_a_group_that_was_downgraded_are_discarded() -> None:
    place = Place()
    place.form(ALL_FOUR)
    assert place.handle(ExpressionsResolved({})) == []
    assert place.group.group_type == "classic"


def test_only_a_join_upgrades() -> None:
    place = Place()
    place.form(ALL_FOUR)
    with pytest.raises(KafkaError, match="Group g is not a consumer group"):
        place.heartbeat("new", 3)


def test_groups_that_are_too_large_or_of_another_kind_or_unreadable_are_refused() -> None:
    place = Place()
    place.form(ALL_FOUR, protocol_type="connect")
    with pytest.raises(KafkaError, match="does not use the consumer embedded protocol"):
        place.heartbeat("new")
    place = Place()
    place.form(ALL_FOUR, metadata=b"?")
    with pytest.raises(KafkaError, match="the embedded consumer protocol is malformed"):
        place.heartbeat("new")
    place = Place()
    place.form(ALL_FOUR)
    place.settings = msgspec.structs.replace(place.settings, max_size=0)
    with pytest.raises(KafkaError, match="exceeds the consumer group maximum size"):
        place.heartbeat("new")


def test_a_group_whose_assignor_has_user_data_is_not_upgraded() -> None:
    place = Place()
    place.form(b"\0\1" + bytes(encode(ConsumerProtocolAssignment(user_data=b"mine"), 1)))
    with pytest.raises(KafkaError, match="an unsupported custom assignor is in use"):
        place.heartbeat("new")


def test_leave_group_removes_members_of_both_protocols() -> None:
    place = Place()
    place.form(ALL_FOUR)
    place.heartbeat("new")
    place.heartbeat("static", instance_id="i")
    leaving = [("old", None), ("new", None), ("nobody", None), ("old", None), ("", "i"), ("other", "i"), ("", "no")]
    (left,) = place.handle(Leave(PendingReply(), tuple(Leaving(*each, "") for each in leaving)))
    assert [row.error_code for row in left.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert place.known() == set()
    assert place.group.state == "Empty"
    deleted = [
        record.key.member_id for record in place.log if record.value is None and hasattr(record.key, "member_id")
    ]
    assert sorted(deleted) == sorted(["old", "new", "static"] * 3)


def test_a_classic_member_is_answered_while_the_next_target_waits_for_its_interval() -> None:
    place = Place()
    place.form(ALL_FOUR)
    place.heartbeat("new")
    place.settings = msgspec.structs.replace(place.settings, assignment_interval_ms=1000)
    for owned in ([0, 1, 2, 3], [0, 1]):  # gives up what the new member gets
        (joined,) = place.join("old", subscription_of_owner(owned))
    place.heartbeat("another")
    state = place.group.group_state
    assert (joined.generation_id, state.group_epoch, state.target_epoch) == (2, 3, 2)

    (synced,) = place.handle(Sync(PendingReply(), 2, "old", None, None, None, {}))
    (beaten,) = place.handle(Heartbeat(PendingReply(), 2, "old", None))

    assert (synced.error_code, synced.assignment != b"") == (ErrorCode.NONE, True)
    assert beaten.error_code == ErrorCode.NONE


def test_the_group_is_downgraded_when_its_last_such_member_comes_back_with_the_classic_protocol() -> None:
    place = Place()
    place.form(ALL_FOUR)
    place.heartbeat("new", instance_id="static")
    place.heartbeat("new", -2, instance_id="static")
    (joined,) = place.join("back", instance_id="static")
    assert (joined.error_code, joined.member_id) == (ErrorCode.NONE, "back")
    assert place.group.group_type == "classic"
    assert place.known() == {"old", "back"}
    reloaded = place.migration.classic_group("g", 0)
    reloaded.replay(place.log[-1])
    assert {member.group_instance_id for member in reloaded.members} == {None, "static"}


def test_the_metadata_may_change_before_the_last_such_member_comes_back_with_the_classic_protocol() -> None:
    place = Place()
    place.form(b"")
    place.heartbeat("new", instance_id="static")
    place.group.metadata_changed({"t"}, False, place.now_ms)

    (joined,) = place.join("back", instance_id="static")

    assert joined.error_code == ErrorCode.NONE
    assert place.group.group_type == "classic"


def test_the_first_target_after_an_upgrade_does_not_wait_for_the_interval() -> None:
    """As in Kafka, whose converted group has a target of time 0."""
    place = Place()
    place.settings = msgspec.structs.replace(place.settings, assignment_interval_ms=15_000)
    place.form(ALL_FOUR)
    place.heartbeat("new")
    place.heartbeat("another")

    state = place.group.group_state
    assert (state.group_epoch, state.target_epoch) == (3, 2)

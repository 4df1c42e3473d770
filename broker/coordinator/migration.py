"""The conversion of groups with members: from the classic protocol to the consumer protocol, and back.

| | when | epochs |
|---|---|---|
| upgrade | a member of the consumer protocol joins a classic group of consumers | its generation as the group epoch |
| downgrade | the last member of the consumer protocol leaves | the group epoch as the generation; all members rejoin |

The members of an upgraded group keep their partitions: their assignments become their targets and what they own, and
they are served as before (`consumer_group.classic_members`). group.consumer.migration.policy allows each direction; if
an upgrade is impossible, the member that joins gets GROUP_ID_NOT_FOUND. In both directions one batch has the tombstones
of the old group and the records of the new one. Source: KIP-848, Kafka's `convertToConsumerGroup` and
`convertToClassicGroup`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.members import Member
from odradek.broker.coordinator.classic_group.rebalance import JOIN_TIMER, SYNC_TIMER, ClassicSettings
from odradek.broker.coordinator.consumer_group import consumer_protocol, records
from odradek.broker.coordinator.consumer_group.events import ConsumerHeartbeat, all_timers, session_timer
from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.subscription import metadata_hash
from odradek.broker.coordinator.group_type import Conversion
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerKey
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.errors import ErrorCode, KafkaError, RemoteProtocolError
from odradek.protocol.stored_records.consumer_group import ClassicMemberMetadata, ClassicProtocol

_UPGRADES = ("upgrade", "bidirectional")
_DOWNGRADES = ("downgrade", "bidirectional")


class Migration:
    """Makes the groups of a broker, of both types, and converts one into the other."""

    def __init__(
        self,
        settings: Callable[[str], ConsumerGroupSettings],
        classic_settings: ClassicSettings,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._settings = settings
        self._classic_settings = classic_settings
        self._image = image

    def classic_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        return ClassicGroup(group_id, self._classic_settings, now_ms, self.upgrade)

    def consumer_group(self, group_id: str, _: int) -> ConsumerGroup:
        return ConsumerGroup(group_id, partial(self._settings, group_id), self._image, self.downgrade)

    def upgrade(self, group: ClassicGroup, event: ConsumerHeartbeat, now_ms: int) -> Effects:
        """Convert a classic group with members to a consumer group, which a member of the consumer protocol joins.

        Raises GROUP_ID_NOT_FOUND if the group cannot be converted, and the errors of the heartbeat.
        """
        self._check_upgrade(group, event)
        try:
            converted = _converted(group, self._image())
        except RemoteProtocolError as error:
            detail = "because the embedded consumer protocol is malformed."
            raise _cannot_upgrade(group, detail) from error
        upgraded = self.consumer_group(group.group_id, now_ms)
        for record in converted:
            upgraded.replay(record)
        joined = upgraded.handle(event, now_ms)
        for record in joined.records:
            upgraded.replay(record)
        sessions = {session_timer(member.member_id): member.session_timeout_ms for member in group.members}
        line = LogLine("group upgraded to the consumer protocol", {"members": len(group.members)})
        return Conversion(
            replies=[*group.refuse_all_parked(ErrorCode.REBALANCE_IN_PROGRESS).replies, *joined.replies],
            records=[*group.tombstones(), *converted, *joined.records],
            timers={JOIN_TIMER: None, SYNC_TIMER: None, **sessions, **joined.timers},
            log_lines=[line],
            work=joined.work,
            new_group=upgraded,
        )

    def downgrade(self, state: GroupState, gone: Collection[str], now_ms: int) -> Conversion | None:
        """Convert a consumer group to a classic one without the members `gone`.

        Return None if that is not allowed, or other members of the consumer protocol stay.
        """
        staying = [member for member in state.members.values() if member.member_id not in gone]
        if not staying or any(member.classic is None for member in staying):
            return None
        if self._settings(state.group_id).migration_policy.lower() not in _DOWNGRADES:
            return None
        if len(staying) > self._classic_settings.max_size:
            return None
        group = self.classic_group(state.group_id, now_ms)
        group.take_over([_classic_member(state, member, self._image()) for member in staying], state.group_epoch)
        record = group.record()
        effects = group.rebalance("downgraded: its last member of the consumer protocol is gone", now_ms)
        timers: dict[TimerKey, int | None] = {
            each: None for member_id in state.members for each in all_timers(member_id)
        }
        return Conversion(
            replies=effects.replies,
            records=[*state.tombstones(), record, *effects.records],
            timers=timers | effects.timers,
            log_lines=effects.log_lines,
            new_group=group,
        )

    def _check_upgrade(self, group: ClassicGroup, event: ConsumerHeartbeat) -> None:
        settings = self._settings(group.group_id)
        if event.request.member_epoch != 0:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
        if settings.migration_policy.lower() not in _UPGRADES:
            raise _cannot_upgrade(group, "because online upgrade is disabled.")
        if group.protocol_type != consumer_protocol.NAME:
            raise _cannot_upgrade(group, "because the group does not use the consumer embedded protocol.")
        if len(group.members) > settings.max_size:
            raise _cannot_upgrade(group, "because the group size exceeds the consumer group maximum size.")


def _cannot_upgrade(group: ClassicGroup, why: str) -> KafkaError:
    detail = f"Cannot upgrade classic group {group.group_id} to consumer group {why}"
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, detail)


def _converted(group: ClassicGroup, image: MetadataImage) -> list[CoordinatorRecord]:
    """Return the records of a consumer group with the members and assignments of a classic one.

    Raises RemoteProtocolError; GROUP_ID_NOT_FOUND if the members use an assignor whose user data would be lost.
    """
    group_id, epoch = group.group_id, group.generation_id
    members = [_consumer_member(group, member, image) for member in group.members]
    names = {name for member in members for name in member.subscribed_topic_names}
    return [
        *(records.subscription(group_id, member) for member in members),
        records.group_epoch(group_id, epoch, metadata_hash(names, image)),
        *(records.target(group_id, member.member_id, member.assigned) for member in members),
        records.target_epoch(group_id, epoch, 0),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def _consumer_member(group: ClassicGroup, member: Member, image: MetadataImage) -> ConsumerMember:
    epoch = group.generation_id
    assignment = consumer_protocol.read_assignment(member.assignment)
    if assignment.user_data:
        raise _cannot_upgrade(
            group,
            "because an unsupported custom assignor is in use. Please refer to the documentation or switch to a "
            "default assignor before re-attempting the upgrade.",
        )
    # The group has no protocol yet if the member waits for its first generation.
    metadata = member.metadata(group.protocol_name) or member.protocols[0][1]
    subscription = consumer_protocol.read_subscription(metadata)
    owned = consumer_protocol.topic_partition_ids(assignment.assigned_partitions, image)
    return ConsumerMember(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned={topic_id: dict.fromkeys(numbers, epoch) for topic_id, numbers in owned.items()},
        classic=ClassicMemberMetadata(
            member.session_timeout_ms, [ClassicProtocol(name, data) for name, data in member.protocols]
        ),
    )


def _classic_member(state: GroupState, member: ConsumerMember, image: MetadataImage) -> Member:
    """Return the member with its target as its assignment; it revokes nothing that it does not own."""
    assert member.classic is not None
    protocols = tuple((each.name, bytes(each.metadata)) for each in member.classic.supported_protocols)
    target = state.targets.get(member.member_id, {})
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        protocols,
        consumer_protocol.write_assignment(target, image, protocols[0][1]),
    )

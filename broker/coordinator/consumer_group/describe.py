"""A consumer group in the response of ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.target_assignment import assignor_name
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.messages.consumer_group_describe import Assignment, DescribedGroup, Member, TopicPartitions

_CLASSIC, _CONSUMER = 0, 1


def described(state: GroupState, settings: ConsumerGroupSettings, image: MetadataImage) -> DescribedGroup:
    return DescribedGroup(
        group_id=state.group_id,
        group_state=state.name,
        group_epoch=state.group_epoch,
        assignment_epoch=state.target_epoch,
        assignor_name=assignor_name(state.members.values(), settings),
        members=[_member(state, member, image) for member in state.members.values()],
    )


def _member(state: GroupState, member: ConsumerMember, image: MetadataImage) -> Member:
    # A partition that is pending revocation belongs to the member until it confirms the revocation.
    owned = {
        topic_id: {*member.assigned.get(topic_id, ()), *member.pending_revocation.get(topic_id, ())}
        for topic_id in member.assigned.keys() | member.pending_revocation.keys()
    }
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned, image),
        target_assignment=_assignment(state.targets.get(member.member_id, {}), image),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[bytes, Collection[int]], image: MetadataImage) -> Assignment:
    """Return the partitions without those of deleted topics."""
    return Assignment(
        [
            TopicPartitions(topic_id, image.topics_by_id[topic_id].name, sorted(partitions[topic_id]))
            for topic_id in sorted(partitions)
            if topic_id in image.topics_by_id
        ]
    )

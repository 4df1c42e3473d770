"""The target assignment: what every member of a group should have, computed by an assignor for a group epoch.

It is computed when a heartbeat finds the group epoch above the target's, but not more often than every
group.consumer.assignment.interval.ms: members that come in one by one then share one target. Until then a heartbeat is
answered by the old one, which has nothing for a new member. Source: Kafka's `TargetAssignmentBuilder`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, partial

import msgspec

from odradek.broker.coordinator.assignors import ASSIGNORS, Assignment, MemberSpec
from odradek.broker.coordinator.consumer_group import records
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.subscription import topic_ids, topic_names
from odradek.broker.coordinator.runtime.records import CoordinatorRecord
from odradek.broker.metadata.image import MetadataImage


class TargetAssignment(msgspec.Struct, frozen=True):
    """A new target: by member id, and as records, which leave out members whose target is as before."""

    targets: dict[str, Assignment]
    records: list[CoordinatorRecord]


def is_due(state: GroupState, group_epoch: int, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    """Say whether a target for `group_epoch` is wanted and may be computed by now."""
    if state.target_epoch >= group_epoch:
        return False
    interval_ms = settings.assignment_interval_ms
    return not state.target_timestamp or not interval_ms or now_ms >= state.target_timestamp + interval_ms


def assignor_name(members: Iterable[ConsumerMember], settings: ConsumerGroupSettings) -> str:
    """Return the assignor that most members ask for, of several the one configured first."""
    votes = Counter(member.server_assignor for member in members)
    return max(settings.assignors, key=lambda name: votes[name])


def compute(
    state: GroupState,
    members: Mapping[str, ConsumerMember],
    group_epoch: int,
    settings: ConsumerGroupSettings,
    image: MetadataImage,
    now_ms: int,
) -> TargetAssignment:
    """Return the target of `members`, which may be ahead of the state by the member that the event is about."""
    # Most members read the same: what their names stand for is looked up once.
    ids_of = cache(partial(topic_ids, image=image))
    specs = {
        member.member_id: MemberSpec(
            topic_ids=ids_of(topic_names(member, state.expressions)),
            assigned=state.target_of(member.member_id, member.instance_id).partitions,
            instance_id=member.instance_id,
        )
        for member in members.values()
    }
    subscribed = frozenset().union(*{spec.topic_ids for spec in specs.values()})
    counts = {topic_id: len(image.topics_by_id[topic_id].partitions) for topic_id in subscribed}
    targets = ASSIGNORS[assignor_name(members.values(), settings)](specs, counts)
    changed = [
        records.target(state.group_id, member_id, target)
        for member_id, target in targets.items()
        if state.targets.get(member_id) != target
    ]
    return TargetAssignment(targets, [*changed, records.target_epoch(state.group_id, group_epoch, now_ms)])

"""The target assignment: the partitions that every member should have, computed by an assignor for a group epoch.

A heartbeat computes it if the group epoch is above the target's, but not more often than every
group.consumer.assignment.interval.ms: members that join one after the other then share one target. Until then
heartbeats are answered from the old one, which has no partitions for a new member. Source: Kafka's
`TargetAssignmentBuilder`.
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
    """A new target by member id, and the records of the members whose target changed."""

    targets: dict[str, Assignment]
    records: list[CoordinatorRecord]


def is_due(state: GroupState, group_epoch: int, settings: ConsumerGroupSettings, now_ms: int) -> bool:
    """Return whether a target for `group_epoch` is needed and may be computed now."""
    if state.target_epoch >= group_epoch:
        return False
    if not state.target_timestamp:
        return True
    # Negative after a wall clock was set back, or under the clock of another coordinator.
    passed_ms = now_ms - state.target_timestamp
    return not 0 <= passed_ms < settings.assignment_interval_ms


def assignor_name(members: Iterable[ConsumerMember], settings: ConsumerGroupSettings) -> str:
    """Return the assignor that most members name; in a tie, the one that is configured first."""
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
    """Return the target of `members`: those of the state, but with the changes of the event to one of them."""
    # Most members read the same topics, so their ids are looked up once.
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

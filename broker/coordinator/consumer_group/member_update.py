"""The effects of a heartbeat or JoinGroup of one member, in the order in which they must be written.

```
its subscription changed ─► its record ─► its expression ─► a new group epoch, if the topics changed
    ─► a target for that epoch, if due ─► one step of the member's reconciliation ─► its rebalance timer
```

The state does not change here, but by the records that this collects. Members of both protocols are handled alike.
Source: Kafka's `GroupMetadataManager.consumerGroupHeartbeat`.
"""

from __future__ import annotations

from odradek.broker.coordinator.consumer_group import expressions, records, target_assignment
from odradek.broker.coordinator.consumer_group.current_assignment import Reconciliation, Target
from odradek.broker.coordinator.consumer_group.events import rebalance_timer
from odradek.broker.coordinator.consumer_group.member import ConsumerMember, MemberState, TopicPartitionIds
from odradek.broker.coordinator.consumer_group.settings import ConsumerGroupSettings
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.subscription import (
    all_topic_names,
    metadata_hash,
    topic_ids,
    topic_names,
)
from odradek.broker.coordinator.group_type import MayDescribe
from odradek.broker.coordinator.runtime.events import Effects
from odradek.broker.metadata.image import MetadataImage


class MemberUpdate:
    """One event of one member: `old` is the member as stored, `new` with the fields of the request. `apply` it once."""

    def __init__(
        self,
        state: GroupState,
        settings: ConsumerGroupSettings,
        image: MetadataImage,
        now_ms: int,
        old: ConsumerMember,
        new: ConsumerMember,
        effects: Effects,
        may_describe: MayDescribe | None,
    ) -> None:
        self._may_describe = may_describe
        self._state = state
        self._settings = settings
        self._image = image
        self._now_ms = now_ms
        self._old = old
        self._new = new
        self._effects = effects

    def apply(self, owned: TopicPartitionIds | None) -> ConsumerMember:
        """Add to the effects, and return the member after its step of reconciliation.

        `owned` are the partitions that the request names as owned, None if it names none. Raises
        INVALID_REGULAR_EXPRESSION.
        """
        old, new = self._old, self._new
        if new != old:
            self._effects.records.append(records.subscription(self._state.group_id, new))
        names_changed = new.subscribed_topic_names != old.subscribed_topic_names
        pattern_changed = new.subscribed_topic_regex != old.subscribed_topic_regex
        is_pattern_known = expressions.update(
            self._state, old, new, self._image, self._now_ms, self._effects, self._may_describe
        )
        # A new expression changes the group's topics only when it is resolved.
        epoch = self._group_epoch(has_changed=names_changed or is_pattern_known)
        return self._reconciled(self._target(epoch), owned, has_subscription_changed=names_changed or pattern_changed)

    def _group_epoch(self, *, has_changed: bool) -> int:
        """Return the group's epoch, a new one if the members read other topics or their topics changed."""
        state, effects = self._state, self._effects
        if not has_changed and not state.is_refresh_due:
            return state.group_epoch
        names = all_topic_names(self._members().values(), state.expressions)
        new_hash = metadata_hash(names, self._image)
        epoch = state.group_epoch
        if has_changed or new_hash != state.metadata_hash:
            epoch += 1
            effects.records.append(records.group_epoch(state.group_id, epoch, new_hash))
        if state.has_subscription_metadata:
            effects.records.append(records.subscription_metadata_deleted(state.group_id))
        return epoch

    def _target(self, epoch: int) -> Target:
        """Return the member's target: of a new target assignment for `epoch`, if one is due, else of the last one."""
        state, new = self._state, self._new
        if not target_assignment.is_due(state, epoch, self._settings, self._now_ms):
            return state.target_of(new.member_id, new.instance_id)
        computed = target_assignment.compute(state, self._members(), epoch, self._settings, self._image, self._now_ms)
        self._effects.records += computed.records
        return Target(epoch, computed.targets[new.member_id])

    def _members(self) -> dict[str, ConsumerMember]:
        """Return the members after the event: with this one, and without the static member that it replaces."""
        state, new = self._state, self._new
        members = {**state.members, new.member_id: new}
        replaced = state.static_member(new.instance_id)
        if replaced is not None and replaced.member_id != new.member_id:
            del members[replaced.member_id]
        return members

    def _reconciled(
        self, target: Target, owned: TopicPartitionIds | None, *, has_subscription_changed: bool
    ) -> ConsumerMember:
        state, new, effects = self._state, self._new, self._effects
        if new.is_reconciled_to(target.epoch) and not has_subscription_changed:
            return new
        member = Reconciliation(
            target=target,
            subscribed_topic_ids=topic_ids(topic_names(new, state.expressions), self._image),
            owned=owned,
            has_subscription_changed=has_subscription_changed,
            is_owned=state.is_owned,
        ).apply(new)
        if member != new:
            effects.records.append(records.current_assignment(state.group_id, member))
            if member.classic is None:
                is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
                effects.timers[rebalance_timer(member.member_id)] = member.rebalance_timeout_ms if is_revoking else None
        return member

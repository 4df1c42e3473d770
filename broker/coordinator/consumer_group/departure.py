"""Members that leave a group: by request, or because one of their timers (`events`) expires.

- A member that leaves or is fenced is deleted from the log, its partitions are free at once, and the group gets a new
  epoch.
- A static member that leaves with epoch -2 will come back: its epoch becomes -2, and it keeps its partitions until it
  is back or its session ends. Other members do not notice.
- If all members that stay use the classic protocol, the group may be converted to a classic one instead (`migration`).

Source: Kafka's `GroupMetadataManager.consumerGroupLeave` and `consumerGroupFenceMembers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec

from odradek.broker.coordinator.consumer_group import checks, records
from odradek.broker.coordinator.consumer_group.events import REBALANCE, ConsumerHeartbeat, all_timers
from odradek.broker.coordinator.consumer_group.member import STATIC_LEAVE_EPOCH, ConsumerMember, MemberState
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.subscription import all_topic_names, metadata_hash
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerKey
from odradek.broker.metadata.image import MetadataImage
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

Downgrade = Callable[[GroupState, Collection[str]], Effects | None]
"""A function that converts a group to a classic one without these members; None if it is not to be converted."""


def leave(state: GroupState, event: ConsumerHeartbeat, image: MetadataImage, downgrade: Downgrade) -> Effects:
    """Remove the member, or keep it as one that will come back. Raises UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID."""
    request = event.request
    member = checks.known_member(state, request.member_id, request.instance_id)
    if request.member_epoch == STATIC_LEAVE_EPOCH:
        effects = Effects(records=[records.current_assignment(state.group_id, _away(member))])
    else:
        effects = fence(state, [member], image, "it left", downgrade)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    effects.replies.append((event.pending_reply, response))
    return effects


def time_out(state: GroupState, timer: TimerKey, image: MetadataImage, downgrade: Downgrade) -> Effects:
    """Fence the member whose timer expired, unless it is gone, or has already done what the timer waits for."""
    kind, member_id = timer
    member = state.members.get(member_id)
    if member is None or (kind == REBALANCE and not _is_revoking(member)):
        return Effects()
    return fence(state, [member], image, f"its {kind} timeout expired", downgrade)


def fence(
    state: GroupState, members: Sequence[ConsumerMember], image: MetadataImage, reason: str, downgrade: Downgrade
) -> Effects:
    """Remove the members. Those that stay may get their partitions from the next epoch on."""
    gone = {member.member_id for member in members}
    log_lines = [
        LogLine("consumer group member removed", {"member": member_id, "reason": reason}) for member_id in sorted(gone)
    ]
    downgraded = downgrade(state, gone)
    if downgraded is not None:
        downgraded.log_lines += log_lines
        return downgraded
    effects = Effects(log_lines=log_lines)
    for member in members:
        effects.records += records.member_deleted(state.group_id, member.member_id)
        effects.timers.update(dict.fromkeys(all_timers(member.member_id)))
    effects.records += [records.expression_deleted(state.group_id, pattern) for pattern in _orphaned(state, members)]
    staying = [member for member in state.members.values() if member.member_id not in gone]
    names = all_topic_names(staying, state.expressions)
    effects.records.append(records.group_epoch(state.group_id, state.group_epoch + 1, metadata_hash(names, image)))
    return effects


def _orphaned(state: GroupState, members: Sequence[ConsumerMember]) -> list[str]:
    """Return the regular expressions that no member subscribes by once these members are gone."""
    counts = Counter(member.subscribed_topic_regex for member in members if member.subscribed_topic_regex)
    return [pattern for pattern, count in counts.items() if state.subscribers_by_pattern[pattern] == count]


def _away(member: ConsumerMember) -> ConsumerMember:
    # It comes back with epoch 0, and may commit for these partitions in the first epoch that it gets.
    assigned = {topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()}
    return msgspec.structs.replace(member, member_epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation={})


def _is_revoking(member: ConsumerMember) -> bool:
    return member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch != STATIC_LEAVE_EPOCH

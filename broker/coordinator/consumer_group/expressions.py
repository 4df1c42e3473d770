"""The resolution of a group's regular expressions: when they are matched against the topics, and the effects.

A new expression matches nothing until it is resolved, in a thread, whose result is the event `ExpressionsResolved`.
All expressions of a group are resolved together, so that they cause one rebalance. That is due if one of them is not
resolved yet or has no member any more, if there are new topics, or ten minutes after the last time; but not while it is
in progress, and not within ten seconds of the last time. They match topics that the client may describe whose request
causes it.
Source: Kafka's `GroupMetadataManager.maybeUpdateRegularExpressions`.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import msgspec

from odradek.broker.coordinator.consumer_group import records
from odradek.broker.coordinator.consumer_group.events import ExpressionsResolved
from odradek.broker.coordinator.consumer_group.member import ConsumerMember
from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression, check, resolve
from odradek.broker.coordinator.consumer_group.state import GroupState
from odradek.broker.coordinator.consumer_group.subscription import all_topic_names, metadata_hash
from odradek.broker.coordinator.group_type import MayDescribe
from odradek.broker.coordinator.runtime.events import Effects
from odradek.broker.metadata.image import MetadataImage

MIN_REFRESH_INTERVAL_MS = 10_000
MAX_REFRESH_INTERVAL_MS = 600_000


def update(
    state: GroupState,
    old: ConsumerMember,
    new: ConsumerMember,
    image: MetadataImage,
    now_ms: int,
    effects: Effects,
    may_describe: MayDescribe | None = None,
) -> bool:
    """Add the effects of a member's expression, new or not; return whether the group's topics change at once.

    Raises INVALID_REGULAR_EXPRESSION.
    """
    before, after = old.subscribed_topic_regex, new.subscribed_topic_regex
    subscribers = state.subscribers_by_pattern
    if before == after and not subscribers:
        return False
    if before != after:
        if after and after not in subscribers:
            check(after)
        if before and subscribers[before] == 1:
            effects.records.append(records.expression_deleted(state.group_id, before))
    patterns = Counter(subscribers)
    patterns[before] -= 1
    patterns[after] += 1
    wanted = frozenset(pattern for pattern, count in patterns.items() if pattern and count > 0)
    if wanted and _is_refresh_due(state, wanted, now_ms):
        effects.work = partial(_resolve, wanted, image, now_ms, may_describe)
    return before != after and (not after or after in state.expressions)


def resolved(state: GroupState, event: ExpressionsResolved, image: MetadataImage) -> Effects:
    """Store the matches of expressions that still have subscribers. Other topics make a new group epoch."""
    effects = Effects()
    matches = {pattern: found for pattern, found in event.resolved.items() if pattern in state.subscribers_by_pattern}
    effects.records += [records.expression(state.group_id, pattern, found) for pattern, found in matches.items()]
    has_changed = any(
        found.topics != state.expressions.get(pattern, ResolvedExpression()).topics
        for pattern, found in matches.items()
    )
    names = all_topic_names(state.members.values(), {**state.expressions, **matches})
    new_hash = metadata_hash(names, image)
    if has_changed or new_hash != state.metadata_hash:
        effects.records.append(records.group_epoch(state.group_id, state.group_epoch + 1, new_hash))
    return effects


def _is_refresh_due(state: GroupState, patterns: frozenset[str], now_ms: int) -> bool:
    if state.is_resolving:
        return False
    if not state.expressions:
        return True
    last_ms = max(resolved.timestamp for resolved in state.expressions.values())
    if now_ms <= last_ms + MIN_REFRESH_INTERVAL_MS:
        return False
    last_revision = max(resolved.version for resolved in state.expressions.values())
    return (
        patterns != state.expressions.keys()
        or last_revision < state.topics_added_at
        or now_ms > last_ms + MAX_REFRESH_INTERVAL_MS
    )


def _resolve(
    patterns: frozenset[str], image: MetadataImage, now_ms: int, may_describe: MayDescribe | None
) -> ExpressionsResolved:
    found = resolve(patterns, image.topics, image.revision, now_ms)
    if may_describe is None:
        return ExpressionsResolved(found)
    return ExpressionsResolved(
        {
            pattern: msgspec.structs.replace(each, topics=frozenset(filter(may_describe, each.topics)))
            for pattern, each in found.items()
        }
    )

"""The hook around the coordinators: reports how an event changes the state of a group or of a transactional id.

```
handle(key, event) ─► the state before is noted ─► records ─► replayed ─► event_completed ─► compared with the state now
```

A key handles one event at a time, so there is one note for each key with an event in progress. A classic group may go
through several states in one event; those between are the shortest way through `classic_group.state_table`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from odradek.broker.coordinator.classic_group.group import ClassicGroup
from odradek.broker.coordinator.classic_group.state_table import TRANSITIONS, State
from odradek.broker.coordinator.consumer_group.group import ConsumerGroup
from odradek.broker.coordinator.group_shard import GroupCoordinatorShard
from odradek.broker.coordinator.runtime.coordinator_shard import NO_PRODUCER, CoordinatorShard
from odradek.broker.coordinator.runtime.events import Effects, LogLine, TimerExpired
from odradek.broker.coordinator.transactions.transaction_shard import TransactionShard
from odradek.broker.explain.events import GroupTransition, TransactionTransition
from odradek.broker.explain.shown import cut_text
from odradek.protocol.errors import ErrorCode

NONE = "none"
MOST_PARTITIONS = 10
MOST_REASONS = 3

S = TypeVar("S", bound=CoordinatorShard)


class GroupView(NamedTuple):
    """The state of a group, as far as a transition shows it."""

    group_type: str
    state: str
    generation: int
    members: int


class TransactionView(NamedTuple):
    """The state of a transactional id, as far as a transition shows it."""

    status: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[tuple[str, int]]


ReportGroup = Callable[[str, GroupView | None, GroupView | None, str], None]
ReportTransaction = Callable[[str, TransactionView | None, TransactionView | None, str], None]


def observe_groups(report: ReportGroup) -> Callable[[CoordinatorShard, GroupCoordinatorShard], CoordinatorShard]:
    """Return a `ShardObserver` that calls `report` with a group, its states before and after, and the reason."""
    return lambda inner, shard: ObservedShard(inner, shard, group_view, report)


def observe_transactions(
    report: ReportTransaction,
) -> Callable[[CoordinatorShard, TransactionShard], CoordinatorShard]:
    """Return a `ShardObserver` that calls `report` with a transactional id, and as for groups."""
    return lambda inner, shard: ObservedShard(inner, shard, transaction_view, report)


def group_view(shard: GroupCoordinatorShard, group_id: str) -> GroupView | None:
    group = shard.groups.get(group_id)
    if group is None:
        return None
    generation = 0
    if isinstance(group, ClassicGroup):
        generation = group.generation_id
    elif isinstance(group, ConsumerGroup):
        generation = group.group_state.group_epoch
    return GroupView(group.group_type, group.state, generation, group.members_count)


def transaction_view(shard: TransactionShard, transactional_id: str) -> TransactionView | None:
    state = shard.transactions.get(transactional_id)
    if state is None:
        return None
    return TransactionView(state.status.label, state.producer_id, state.producer_epoch, state.partitions)


class ObservedShard(Generic[S]):
    """A `CoordinatorShard` that passes everything to `inner`, and reports what changed of `shard`."""

    def __init__(
        self,
        inner: CoordinatorShard,
        shard: S,
        view: Callable[[S, str], Any],
        report: Callable[[str, Any, Any, str], None],
    ) -> None:
        self._inner = inner
        self._shard = shard
        self._view = view
        self._report = report
        self._before: dict[str, tuple[Any, bool]] = {}  # the state, and whether a timer expired, by key
        # The runtime calls these on the state itself; they are here to complete the interface.
        self.busy_error = inner.busy_error
        self.loaded = inner.loaded
        self.unloaded = inner.unloaded
        self.replay_end_transaction_marker = inner.replay_end_transaction_marker

    def __contains__(self, key: str) -> bool:
        return key in self._inner

    def handle(self, key: str, event: Any, now_ms: int) -> Effects:
        self._note(key, by_timer=isinstance(event, TimerExpired))
        try:
            return self._inner.handle(key, event, now_ms)
        except BaseException:  # nothing has changed
            self._before.pop(key, None)
            raise

    def replay(self, record: Any, record_offset: int, now_ms: int, producer_id: int = NO_PRODUCER) -> None:
        self._inner.replay(record, record_offset, now_ms, producer_id)

    def event_completed(self, key: str, effects: Effects, error: Any) -> None:
        self._inner.event_completed(key, effects, error)
        noted = self._before.pop(key, None)
        if noted is None:
            return  # the event began before the trace
        before, by_timer = noted
        after = self._view(self._shard, key)
        if before != after:
            self._report(key, before, after, _reason(effects.log_lines, by_timer=by_timer))

    def append_completed(self, key: str, follow_up: Any, error: ErrorCode | None, now_ms: int) -> Effects:
        self._note(key)
        return self._inner.append_completed(key, follow_up, error, now_ms)

    def _note(self, key: str, *, by_timer: bool = False) -> None:
        self._before[key] = self._view(self._shard, key), by_timer


def group_transition(
    time_ms: int,
    cause: int | None,
    group_id: str,
    before: GroupView | None,
    after: GroupView | None,
    reason: str,
) -> GroupTransition:
    shown = after or before
    assert shown is not None
    states: tuple[str, ...] = (before.state if before else NONE, after.state if after else NONE)
    if after is not None and after.group_type == ClassicGroup.group_type and (not before or before[0] == after[0]):
        states = _classic_way(before.state if before else State.EMPTY.value, after.state)
    return GroupTransition(
        time_ms, cause, cut_text(group_id), shown.group_type, states, shown.generation, shown.members, reason
    )


def transaction_transition(
    time_ms: int,
    cause: int | None,
    transactional_id: str,
    before: TransactionView | None,
    after: TransactionView | None,
) -> TransactionTransition:
    shown = after or before
    assert shown is not None
    partitions = [f"{cut_text(topic)}-{index}" for topic, index in sorted(shown.partitions)[:MOST_PARTITIONS]]
    if len(shown.partitions) > MOST_PARTITIONS:
        partitions.append(f"… {len(shown.partitions) - MOST_PARTITIONS} more")
    return TransactionTransition(
        time_ms,
        cause,
        cut_text(transactional_id),
        (before.status if before else NONE, after.status if after else NONE),
        shown.producer_id,
        shown.producer_epoch,
        tuple(partitions),
    )


def _classic_way(before: str, after: str) -> tuple[str, ...]:
    """Return the shortest way from one state of a classic group to another, both included."""
    if before == after:
        return (before,)
    ways: deque[tuple[State, ...]] = deque([(State(before),)])
    seen = {State(before)}
    while ways:
        way = ways.popleft()
        if way[-1].value == after:
            return tuple(state.value for state in way)
        following = [state for state in State if state in TRANSITIONS[way[-1]] - seen]
        seen.update(following)
        ways.extend((*way, state) for state in following)
    return before, after  # a state that no other leads to


def _reason(lines: list[LogLine], *, by_timer: bool) -> str:
    """Return the log lines of the event as a sentence: each says why something changed."""
    parts = [_part(line.event, line.fields.get("reason")) for line in lines[:MOST_REASONS]]
    return "; ".join(parts) or ("a timer has expired" if by_timer else "")


def _part(event: str, reason: str | None) -> str:
    if not reason:
        return event
    return cut_text(reason) if event == "rebalancing" else f"{event}: {cut_text(reason)}"

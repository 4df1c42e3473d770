"""Ending the sessions of chosen members of a group: what a test does instead of stopping a client."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.broker.broker import Broker
from odradek.broker.testing.movable_clock import MovableClock

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


async def expire_member(broker: Broker, group_id: str, client_id: str) -> None:
    """End the sessions of the group's members with that client id, as if they had been silent for too long.

    As in Kafka, a member of the classic protocol whose JoinGroup or SyncGroup waits for an answer stays. Returns when
    the group has changed. Raises ValueError if there is no such group or member, and says which there are.
    """
    coordinator = broker.services.groups
    groups = {name: group for shard in coordinator.shards() for name, group in shard.groups.items()}
    if group_id not in groups:
        raise ValueError(f"there is no group {group_id!r}; {_listed('groups', groups)}")
    ended = [session for session in groups[group_id].sessions() if session.client_id == client_id]
    if not ended:
        known = {session.client_id for session in groups[group_id].sessions()}
        raise ValueError(
            f"group {group_id!r} has no member with the client id {client_id!r}; {_listed('members', known)}"
        )
    for session in ended:
        coordinator.end_session(group_id, session.timer)
    if isinstance(broker.clock, MovableClock):
        await broker.clock.settled()


def _listed(what: str, names: Iterable[str]) -> str:
    return f"its {what} are {', '.join(map(repr, sorted(names))) or 'none'}"

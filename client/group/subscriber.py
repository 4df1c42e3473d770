"""A member of a group as the leader sees it when it assigns."""

from __future__ import annotations

from typing import NamedTuple

from odradek.client.record import TopicPartition

Assignment = dict[str, list[TopicPartition]]
"""The partitions of each member, by member id."""


class Subscriber(NamedTuple):
    """What a member subscribes to, what it owns or owned last, and since which generation (-1 unknown)."""

    member_id: str
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    instance_id: str | None = None

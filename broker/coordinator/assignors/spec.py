"""The input and output types of assignors."""

from __future__ import annotations

import msgspec

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id."""


class MemberSpec(msgspec.Struct, frozen=True):
    """A member: the existing topics that it subscribes to, and its partitions in the last target."""

    topic_ids: frozenset[bytes]
    assigned: Assignment = {}
    instance_id: str | None = None

"""What assignors work on."""

from __future__ import annotations

import msgspec

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id."""


class MemberSpec(msgspec.Struct, frozen=True):
    """A member: the topics that it subscribes to and that exist, and what the last target gave it."""

    topic_ids: frozenset[bytes]
    assigned: Assignment = {}
    instance_id: str | None = None

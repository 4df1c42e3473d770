"""Committed offsets in `__consumer_offsets` (record types 0 and 1): the offset that a group committed for a partition.

Type 0 is the older one, and is only read. A value of null: the offset expired, or the group or the topic was deleted.
"""

from typing import Annotated

from odradek.protocol.schema import ZERO_UUID, Message, i32, i64, message, since, string, tag, until, uuid


@message(versions=(0, 0))
class LegacyOffsetCommitKey(Message):
    """Record type 0."""

    group: string = ""
    topic: string = ""
    partition: i32 = 0


@message(versions=(0, 0))
class LegacyOffsetCommitValue(Message):
    """Version 0."""

    offset: i64 = 0
    metadata: string = ""
    commit_timestamp: i64 = 0


@message(versions=(0, 0))
class OffsetCommitKey(Message):
    """Record type 1."""

    group: string = ""
    topic: string = ""
    partition: i32 = 0


@message(versions=(0, 4), flexible_since=4)
class OffsetCommitValue(Message):
    """Versions 0–4, flexible from 4.

    Only v1 has an expiry time. v3 adds the leader epoch (KIP-320). v4 adds the topic id.
    """

    offset: i64 = 0
    leader_epoch: Annotated[i32, since(3)] = -1
    metadata: string = ""
    commit_timestamp: i64 = 0
    expire_timestamp: Annotated[i64, since(1), until(1)] = -1
    topic_id: Annotated[uuid, since(4), tag(0)] = ZERO_UUID

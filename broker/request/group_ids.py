"""The check of group ids that most group APIs share."""

from __future__ import annotations

from odradek.protocol.errors import ErrorCode, KafkaError


def check_group_id(group_id: str) -> None:
    """Raise KafkaError INVALID_GROUP_ID for the empty id. Only offsets may be committed under it."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")

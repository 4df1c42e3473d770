"""What handlers of group requests have in common: the group id that they need, and who the client is."""

from __future__ import annotations

from odradek.broker.request.context import RequestContext
from odradek.protocol.errors import ErrorCode, KafkaError


def check_group_id(group_id: str) -> None:
    """Raise KafkaError INVALID_GROUP_ID for the empty id, which only offsets may be kept under."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")


def client_host(context: RequestContext) -> str:
    """The client's address as Kafka stores and shows it, which is how Java prints an address without a name."""
    return f"/{context.peer_address[0]}"

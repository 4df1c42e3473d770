"""What happens to a consumer group, apart from timers."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from odradek.broker.coordinator.consumer_group.regular_expressions import ResolvedExpression
from odradek.broker.coordinator.group_type import CONSUMER, GroupEvent
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


class ConsumerHeartbeat(GroupEvent, frozen=True):
    """ConsumerGroupHeartbeat, its form checked before. `new_member_id` is for a member without one (version 0)."""

    creates: ClassVar[str] = CONSUMER

    request: ConsumerGroupHeartbeatRequest
    new_member_id: str
    client_id: str
    client_host: str


class ExpressionsResolved(msgspec.Struct, frozen=True):
    """Regular expressions were matched against all topics, as earlier effects asked for."""

    resolved: dict[str, ResolvedExpression]

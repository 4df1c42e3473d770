"""What the configuration says about consumer groups, as their state machine needs it."""

from __future__ import annotations

import msgspec

from broker.config import BrokerConfig


class ConsumerGroupSettings(msgspec.Struct, frozen=True):
    """Times in milliseconds; `assignors` by name, the first is the one of groups whose members do not choose."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 0x7FFFFFFF
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 1_000
    migration_policy: str = "bidirectional"

    @classmethod
    def of(cls, config: BrokerConfig) -> ConsumerGroupSettings:
        return cls(
            session_timeout_ms=config.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            max_size=config.group_consumer_max_size,
            assignors=tuple(config.group_consumer_assignors),
            assignment_interval_ms=config.group_consumer_assignment_interval_ms,
            migration_policy=config.group_consumer_migration_policy,
        )

"""The configuration of consumer groups.

Values set for the group itself come first, then those set at run time for the broker or for all brokers, then those of
the broker's file.
"""

from __future__ import annotations

import msgspec

from odradek.broker.config import BrokerConfig
from odradek.broker.config.group_config import GroupConfig
from odradek.broker.metadata.current_config import CurrentConfig


class ConsumerGroupSettings(msgspec.Struct, frozen=True):
    """Times are in milliseconds. Of `assignors` the first is that of groups whose members name none."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 0x7FFFFFFF
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 1_000
    migration_policy: str = "bidirectional"

    @classmethod
    def of(cls, config: BrokerConfig, group: GroupConfig) -> ConsumerGroupSettings:
        return cls(
            session_timeout_ms=group.consumer_session_timeout_ms,
            heartbeat_interval_ms=group.consumer_heartbeat_interval_ms,
            max_size=config.group_consumer_max_size,
            assignors=tuple(config.group_consumer_assignors),
            assignment_interval_ms=group.consumer_assignment_interval_ms,
            migration_policy=config.group_consumer_migration_policy,
        )


class CurrentSettings:
    """Returns the current settings of a group."""

    def __init__(self, config: CurrentConfig) -> None:
        self._config = config

    def __call__(self, group_id: str) -> ConsumerGroupSettings:
        return ConsumerGroupSettings.of(self._config.broker, self._config.group_config(group_id))

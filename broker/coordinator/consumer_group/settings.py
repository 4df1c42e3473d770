"""The configuration of consumer groups.

Values set for the group itself come first, then those set at run time for the broker or for all brokers, then those of
the broker's file.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from odradek.broker.config import BrokerConfig
from odradek.broker.config.broker_config import PROPERTIES
from odradek.broker.config.group_config import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, overridden
from odradek.broker.metadata.image import MetadataImage

_ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
"""The only one of them that Kafka changes for the whole broker at run time."""


class ConsumerGroupSettings(msgspec.Struct, frozen=True):
    """Times are in milliseconds. Of `assignors` the first is that of groups whose members name none."""

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


_OWN = {
    SESSION_TIMEOUT: "session_timeout_ms",
    HEARTBEAT_INTERVAL: "heartbeat_interval_ms",
    ASSIGNMENT_INTERVAL: "assignment_interval_ms",
}
"""The fields that can be set for a single group, by property."""


class CurrentSettings:
    """Returns the current settings of a group."""

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image
        self._at_start = self._of_all = ConsumerGroupSettings.of(config)
        self._broker_configs: object = None

    def __call__(self, group_id: str) -> ConsumerGroupSettings:
        image = self._image()
        if image.broker_configs is not self._broker_configs:
            self._broker_configs = image.broker_configs
            self._of_all = self._with_dynamic_configs(image)
        configs = image.group_configs.get(group_id)
        if configs is None:
            return self._of_all
        own = {_OWN[name]: value for name, value in overridden(self._config, configs[0]).items()}
        return msgspec.structs.replace(self._of_all, **own)

    def _with_dynamic_configs(self, image: MetadataImage) -> ConsumerGroupSettings:
        text = image.dynamic_configs(self._config.node_id).get(_ASSIGNMENT_INTERVAL)
        if text is None:
            return self._at_start
        interval_ms = PROPERTIES[_ASSIGNMENT_INTERVAL].parse(text)
        return msgspec.structs.replace(self._at_start, assignment_interval_ms=interval_ms)

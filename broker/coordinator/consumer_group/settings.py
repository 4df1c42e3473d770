"""What the configuration says about consumer groups, as their state machine needs it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from broker.config import BrokerConfig
from broker.config.broker_config import PROPERTIES
from broker.metadata.image import MetadataImage

_ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
"""The only one of them that Kafka changes at run time."""


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


class CurrentSettings:
    """The settings as of now: those of the broker's start, and over them what was set since."""

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image
        self._at_start = self._settings = ConsumerGroupSettings.of(config)
        self._broker_configs: object = None

    def __call__(self) -> ConsumerGroupSettings:
        image = self._image()
        if image.broker_configs is not self._broker_configs:
            self._broker_configs = image.broker_configs
            text = image.dynamic_configs(self._config.node_id).get(_ASSIGNMENT_INTERVAL)
            interval_ms = (
                self._at_start.assignment_interval_ms if text is None else PROPERTIES[_ASSIGNMENT_INTERVAL].parse(text)
            )
            self._settings = msgspec.structs.replace(self._at_start, assignment_interval_ms=interval_ms)
        return self._settings

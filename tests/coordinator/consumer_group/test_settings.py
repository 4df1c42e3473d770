from __future__ import annotations

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.consumer_group.settings import CurrentSettings
from odradek.broker.metadata.current_config import CurrentConfig
from odradek.broker.metadata.image import MetadataImage

INTERVAL = "group.consumer.assignment.interval.ms"


def test_a_property_set_at_run_time_has_effect_at_once_until_it_is_deleted() -> None:
    config = CurrentConfig(BrokerConfig.load(None, {INTERVAL: "500", "group.consumer.max.size": "9"}))
    settings = CurrentSettings(config)
    assert (settings("g").assignment_interval_ms, settings("g").max_size) == (500, 9)

    config.apply(MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1)}))
    assert (settings("g").assignment_interval_ms, settings("g").max_size) == (2000, 9)

    config.apply(MetadataImage())
    assert settings("g").assignment_interval_ms == 500


def test_properties_of_the_group_come_first() -> None:
    config = CurrentConfig(BrokerConfig.load())
    own_configs = {"consumer.session.timeout.ms": "50000", "consumer.assignment.interval.ms": "0"}
    config.apply(MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1)}, group_configs={"g": (own_configs, 1)}))
    settings = CurrentSettings(config)

    own, others = settings("g"), settings("h")

    assert (own.session_timeout_ms, own.heartbeat_interval_ms, own.assignment_interval_ms) == (50_000, 5_000, 0)
    assert (others.session_timeout_ms, others.heartbeat_interval_ms, others.assignment_interval_ms) == (
        45_000,
        5_000,
        2_000,
    )

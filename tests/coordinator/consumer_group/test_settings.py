from __future__ import annotations

from odradek.broker.config import BrokerConfig
from odradek.broker.coordinator.consumer_group.settings import CurrentSettings
from odradek.broker.metadata.image import MetadataImage

INTERVAL = "group.consumer.assignment.interval.ms"


def test_what_is_set_at_run_time_holds_at_once_and_what_is_taken_back_no_more() -> None:
    config = BrokerConfig.load(None, {"node.id": "7", INTERVAL: "500", "group.consumer.max.size": "9"})
    image = MetadataImage()
    settings = CurrentSettings(config, lambda: image)
    assert (settings("g").assignment_interval_ms, settings("g").max_size) == (500, 9)
    image = MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1)})
    assert (settings("g").assignment_interval_ms, settings("g").max_size) == (2000, 9)
    image = MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1), 7: ({INTERVAL: "3000"}, 2)})
    assert settings("g").assignment_interval_ms == 3000
    image = MetadataImage(broker_configs={8: ({INTERVAL: "4000"}, 3)})
    assert settings("g").assignment_interval_ms == 500


def test_a_group_goes_by_its_own_first() -> None:
    config = BrokerConfig.load(None, {"node.id": "7"})
    image = MetadataImage(
        broker_configs={None: ({INTERVAL: "2000"}, 1)},
        group_configs={"g": ({"consumer.session.timeout.ms": "50000", "consumer.assignment.interval.ms": "0"}, 1)},
    )
    settings = CurrentSettings(config, lambda: image)

    own, others = settings("g"), settings("h")

    assert (own.session_timeout_ms, own.heartbeat_interval_ms, own.assignment_interval_ms) == (50_000, 5_000, 0)
    assert (others.session_timeout_ms, others.heartbeat_interval_ms, others.assignment_interval_ms) == (
        45_000,
        5_000,
        2_000,
    )


def test_what_was_set_within_wider_bounds_is_cut() -> None:
    config = BrokerConfig.load(None, {"node.id": "7", "group.consumer.max.session.timeout.ms": "46000"})
    image = MetadataImage(group_configs={"g": ({"consumer.session.timeout.ms": "50000", "of.another.version": "1"}, 1)})

    assert CurrentSettings(config, lambda: image)("g").session_timeout_ms == 46_000

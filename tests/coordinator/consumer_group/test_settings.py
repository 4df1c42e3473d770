from __future__ import annotations

from broker.config import BrokerConfig
from broker.coordinator.consumer_group.settings import CurrentSettings
from broker.metadata.image import MetadataImage

INTERVAL = "group.consumer.assignment.interval.ms"


def test_what_is_set_at_run_time_holds_at_once_and_what_is_taken_back_no_more() -> None:
    config = BrokerConfig.load(None, {"node.id": "7", INTERVAL: "500", "group.consumer.max.size": "9"})
    image = MetadataImage()
    settings = CurrentSettings(config, lambda: image)
    assert (settings().assignment_interval_ms, settings().max_size) == (500, 9)
    image = MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1)})
    assert (settings().assignment_interval_ms, settings().max_size) == (2000, 9)
    image = MetadataImage(broker_configs={None: ({INTERVAL: "2000"}, 1), 7: ({INTERVAL: "3000"}, 2)})
    assert settings().assignment_interval_ms == 3000
    image = MetadataImage(broker_configs={8: ({INTERVAL: "4000"}, 3)})
    assert settings().assignment_interval_ms == 500

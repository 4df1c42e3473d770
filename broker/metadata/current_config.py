"""The current configuration of one broker: its file's properties with those set at run time over them.

```
metadata image ─► CurrentConfig.apply ─► broker: a new BrokerConfig ─► callbacks of on_change
                                      └► group_config, log_config
```

This is the one way in which a changed property reaches its user. A user keeps the `CurrentConfig`, never a value, and
reads `broker` (or calls `group_config`, `log_config`) whenever it needs one. A user that must act at once, such as one
with clients waiting for room, also registers with `on_change`. `Metadata` owns the object, and updates it before any
other listener of the image runs.

| level | set in | read by |
|---|---|---|
| broker, all brokers | `image.broker_configs` | `broker` |
| topic | `TopicImage.configs` | `log_config(topic.configs)`: `Partitions` passes it to the logs |
| group | `image.group_configs` | `group_config(group_id)` |

Kafka's `DynamicBrokerConfig.currentKafkaConfig`, with `Reconfigurable` for the callbacks, is the model.
"""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.config import BrokerConfig
from odradek.broker.config.describe import NOTHING, Texts
from odradek.broker.config.group_config import GroupConfig, group_config
from odradek.broker.config.topic_config import log_config, override
from odradek.broker.metadata.image import MetadataImage, TopicImage
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.structured_logging import StructuredLogger

_LOG = StructuredLogger(__name__)


class CurrentConfig:
    """`broker` is the configuration that holds now; a change replaces it, never alters it. Used on the event loop."""

    def __init__(self, at_start: BrokerConfig) -> None:
        self.broker = at_start
        self._at_start = at_start
        self._image = MetadataImage()
        self._log_config = log_config(at_start)
        self._group_config = group_config(at_start)
        self._callbacks: list[Callable[[], None]] = []

    def apply(self, image: MetadataImage) -> None:
        """Take what an image sets for this broker, for all brokers and for groups."""
        before, self._image = self._image, image
        if image.broker_configs == before.broker_configs:
            return
        known_warnings = self.broker.warnings
        self.broker = self._at_start.altered(image.dynamic_configs(self._at_start.node_id))
        self._log_config = log_config(self.broker)
        self._group_config = group_config(self.broker)
        for warning in self.broker.warnings:
            if warning not in known_warnings:
                _LOG.warning("property not applied", reason=warning)
        for callback in self._callbacks:
            callback()

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call `callback` after each change of `broker`."""
        self._callbacks.append(callback)

    def log_config(self, overrides: Texts = NOTHING) -> LogConfig:
        """Return the configuration of the logs of a topic with `overrides`."""
        return override(self._log_config, overrides)

    def topic_log_config(self, topic: TopicImage) -> LogConfig:
        """Return the configuration of the logs of a topic."""
        return self.log_config(topic.configs)

    def group_config(self, group_id: str) -> GroupConfig:
        """Return the configuration of a group of the consumer protocol, whether the group exists or not."""
        configs = self._image.group_configs.get(group_id)
        return self._group_config if configs is None else group_config(self.broker, configs[0])

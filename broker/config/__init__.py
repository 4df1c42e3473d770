"""The broker's configuration: Kafka's property names, defaults and bounds, in tables that everything is derived from.

```
property.py     one row: name, type, default, bound, topic-level name, dynamic or not, one-line doc
identity.py network.py topics.py log.py observability.py     the tables
without_meaning.py                                           names that mean nothing here, with reasons
broker_config.py    BrokerConfig.load: file and overrides → checked, typed values
describe.py         DescribeConfigs rows of the broker
docs.py             docs/configuration.md, config/*.properties, --help-config   (`python -m broker.config` writes them)
```

What a topic may override, and the `LogConfig` that comes of it, is `broker.topic_config`.
"""

from __future__ import annotations

from broker.config.broker_config import BrokerConfig
from broker.config.endpoints import Endpoint
from broker.config.errors import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Endpoint"]

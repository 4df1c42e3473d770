"""The configuration: Kafka's property names, defaults and bounds, in tables that everything else is derived from.

| module | what |
|---|---|
| `property`, `types`, `bounds` | one row of a table: name, type, default, bound, topic-level name, dynamic or not |
| `java_properties` | Java's `.properties` files |
| `endpoints`, `errors` | the addresses in `listeners`; what goes wrong when a configuration is loaded |
| `ignored_properties` | Kafka's properties that have no effect here, with reasons |
| `broker_config`, `rules` | `BrokerConfig.load`: a file and overrides → checked, typed values |
| `topic_config` | what a topic may override, and the `LogConfig` that comes of it |
| `group_config` | what a group may override |
| `describe`, `describe_order` | the rows of DescribeConfigs, and their order |
| `docs` | docs/configuration.md, config/*.properties, --help-config (`python -m broker.config` writes them) |
| `tables` | the tables of properties |
"""

from __future__ import annotations

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.config.errors import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Endpoint"]

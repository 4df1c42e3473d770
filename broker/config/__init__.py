"""The configuration: Kafka's property names, defaults and bounds, in tables from which everything else is derived.

| module | what |
|---|---|
| `tables` | the properties: begin here |
| `property`, `types`, `bounds` | one row of a table: name, type, default, bound, topic-level name, dynamic or not |
| `endpoints`, `errors` | the addresses in `listeners`; the error of an invalid configuration |
| `ignored_properties` | Kafka's properties without effect here, with reasons |
| `broker_config`, `rules` | `BrokerConfig.load`: from a file and overrides to checked, typed values |
| `workers` | num.workers: the node id, ports and directories of each of several processes |
| `listener_config` | the properties of single listeners and mechanisms, `listener.name.…` |
| `security_rules`, `jaas` | what is refused because it would be insecure; the text of sasl.jaas.config |
| `topic_config` | the properties of a topic, and their `LogConfig` |
| `group_config` | the properties of a group |
| `describe`, `describe_order` | the rows of DescribeConfigs, and their order |
| `docs` | generates docs/configuration.md, config/*.properties, --help-config (`python -m broker.config`) |

The values that hold at run time are in `odradek.broker.metadata.current_config`.
"""

from __future__ import annotations

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoints import Endpoint
from odradek.broker.config.errors import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Endpoint"]

"""The broker's rows of DescribeConfigs: each property with its value, the source of the value, and its synonyms.

A row's synonyms are all sources of its value, in order of precedence (KIP-226):

```
for each source    DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG
  for each name    of its family, such as log.retention.ms, log.retention.minutes, log.retention.hours
    an entry       if that source sets that name
```

As in Kafka, entries before the first one with the row's own name are dropped. The source of the first remaining entry
is the row's source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile
from typing import Any, NamedTuple

from odradek.broker.config.broker_config import DESCRIBED_PROPERTIES, PROPERTIES, BrokerConfig
from odradek.broker.config.property import Property
from odradek.broker.config.types import TypeCode

Texts = Mapping[str, str]
NOTHING: Texts = {}
MIN_INSYNC_REPLICAS = "min.insync.replicas"


class ConfigSource(IntEnum):
    """The source of a value, with its number in DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """One source of a value; `value` is None if it is sensitive."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigRow(NamedTuple):
    """One property in DescribeConfigs; `value` is None if it is unset or sensitive."""

    name: str
    value: str | None
    source: ConfigSource
    is_default: bool
    read_only: bool
    sensitive: bool
    synonyms: list[ConfigSynonym]
    type: TypeCode
    documentation: str


def describe_broker(
    config: BrokerConfig, dynamic: Texts = NOTHING, dynamic_default: Texts = NOTHING
) -> list[ConfigRow]:
    """Return every row of a broker. `dynamic`: its own run-time properties; `dynamic_default`: those of all brokers."""
    rows = []
    for row in DESCRIBED_PROPERTIES.values():
        synonyms = synonyms_of(row.name, config, dynamic, dynamic_default)
        value = own_value(row, config, dynamic, dynamic_default)
        rows.append(_row(row, row.kind.text(value), synonyms))
    return [*rows, *_rows_of_listeners(config, dynamic)]


def _rows_of_listeners(config: BrokerConfig, dynamic: Texts) -> Iterator[ConfigRow]:
    """Yield the rows of properties that are set for a single listener, under their whole names."""
    sources = ((ConfigSource.DYNAMIC_BROKER_CONFIG, dynamic), (ConfigSource.STATIC_BROKER_CONFIG, config.declared))
    for name in {**config.declared, **dynamic}:
        row = config.listener_row(name)
        if row is not None:
            synonyms = [
                ConfigSynonym(name, None if row.sensitive else texts[name], source)
                for source, texts in sources
                if name in texts
            ]
            yield _row(row, synonyms[0].value, synonyms)._replace(name=name)


def with_cluster_defaults(config: BrokerConfig, dynamic_default: Texts) -> Texts:
    """Return the run-time properties of all brokers, with min.insync.replicas even if it is not set.

    Kafka sets it to the controller's value when it formats a cluster with `eligible.leader.replicas.version` 1
    (KIP-966), the default of new clusters. The feature itself is not implemented and not advertised.
    """
    own = own_value(PROPERTIES[MIN_INSYNC_REPLICAS], config, NOTHING, NOTHING)
    return {MIN_INSYNC_REPLICAS: str(own), **dynamic_default}


def describe_broker_defaults(dynamic_default: Texts) -> list[ConfigRow]:
    """Return the rows of the broker with the empty name: only the run-time properties of all brokers."""
    rows = []
    for name in sorted(dynamic_default.keys() & DESCRIBED_PROPERTIES.keys()):
        row = DESCRIBED_PROPERTIES[name]
        text = None if row.sensitive else dynamic_default[name]
        rows.append(_row(row, text, [ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)]))
    return rows


def own_value(row: Property[Any], config: BrokerConfig, dynamic: Texts, dynamic_default: Texts) -> Any:
    """Return the value under the row's own name, without fallbacks; None if it is unset and has no default."""
    for texts in (dynamic, dynamic_default, config.declared):
        if row.name in texts:
            return row.parse(texts[row.name])
    return row.default


def synonyms_of(name: str, config: BrokerConfig, dynamic: Texts, dynamic_default: Texts) -> list[ConfigSynonym]:
    """Return the synonyms of the broker's property `name`, in order of precedence."""
    every = (
        synonym
        for source, texts in (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, dynamic),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, dynamic_default),
            (ConfigSource.STATIC_BROKER_CONFIG, config.declared),
            (ConfigSource.DEFAULT_CONFIG, _DEFAULTS),
        )
        for synonym in _entries(_FAMILIES.get(name, (name,)), source, texts)
    )
    return list(dropwhile(lambda synonym: synonym.name != name, every))


def _entries(family: tuple[str, ...], source: ConfigSource, texts: Texts) -> Iterator[ConfigSynonym]:
    for name in family:
        if name in texts:
            yield ConfigSynonym(name, None if DESCRIBED_PROPERTIES[name].sensitive else texts[name], source)


def _row(row: Property[Any], text: str | None, synonyms: list[ConfigSynonym]) -> ConfigRow:
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigRow(
        name=row.name,
        value=None if row.sensitive else text,
        source=source,
        is_default=source is ConfigSource.DEFAULT_CONFIG,
        read_only=not row.dynamic,
        sensitive=row.sensitive,
        synonyms=synonyms,
        type=row.kind.code,
        documentation=row.documentation,
    )


def _families() -> dict[str, tuple[str, ...]]:
    """Return, by name, the names of one property in several units; only for properties that topics override."""
    families: dict[str, tuple[str, ...]] = {}
    for row in PROPERTIES.values():
        if row.topic is not None and row.fallback:
            family = (row.name, *(fallback.name for fallback in row.fallback))
            families |= dict.fromkeys(family, family)
    return families


_FAMILIES = _families()
_DEFAULTS: Texts = {
    row.name: text for row in DESCRIBED_PROPERTIES.values() if (text := row.kind.text(row.default)) is not None
}

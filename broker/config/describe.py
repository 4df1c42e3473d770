"""The broker's rows of DescribeConfigs: what each property is, where its value comes from, what else was considered.

A row's synonyms are every place that its value could come from, most important first (KIP-226):

```
for each source    DYNAMIC_BROKER_CONFIG, DYNAMIC_DEFAULT_BROKER_CONFIG, STATIC_BROKER_CONFIG, DEFAULT_CONFIG
  for each name    of its family, such as log.retention.ms, log.retention.minutes, log.retention.hours
    an entry       if that source sets that name
```

What stands before the first entry of the row's own name is dropped, as Kafka does; the source of the first one that
remains is the row's source.
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
    """Where a value comes from, by the numbers of DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_GROUP_CONFIG = 8


class ConfigSynonym(NamedTuple):
    """One place that a value may come from; `value` is None if it must not be shown."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigRow(NamedTuple):
    """One property as DescribeConfigs shows it; `value` is None if it is unset or must not be shown."""

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
    """Return every row of a broker; `dynamic` was set for it, `dynamic_default` for all brokers, at run time."""
    rows = []
    for row in DESCRIBED_PROPERTIES.values():
        synonyms = synonyms_of(row.name, config, dynamic, dynamic_default)
        value = own_value(row, config, dynamic, dynamic_default)
        rows.append(_row(row, row.kind.text(value), synonyms))
    return rows


def with_cluster_defaults(config: BrokerConfig, dynamic_default: Texts) -> Texts:
    """Return what is set for all brokers, and min.insync.replicas even if nobody has set it.

    Kafka sets it to the controller's own value when it formats a cluster with `eligible.leader.replicas.version` 1
    (KIP-966), which new clusters have. The feature itself is not served, and not advertised.
    """
    own = own_value(PROPERTIES[MIN_INSYNC_REPLICAS], config, NOTHING, NOTHING)
    return {MIN_INSYNC_REPLICAS: str(own), **dynamic_default}


def describe_broker_defaults(dynamic_default: Texts) -> list[ConfigRow]:
    """Return the rows of the broker with the empty name: what was set for all brokers at run time, and nothing else."""
    rows = []
    for name in sorted(dynamic_default.keys() & DESCRIBED_PROPERTIES.keys()):
        row = DESCRIBED_PROPERTIES[name]
        text = None if row.sensitive else dynamic_default[name]
        rows.append(_row(row, text, [ConfigSynonym(name, text, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)]))
    return rows


def own_value(row: Property[Any], config: BrokerConfig, dynamic: Texts, dynamic_default: Texts) -> Any:
    """Return the value under the row's own name, without fallbacks: None if nobody set it and it has no default."""
    for texts in (dynamic, dynamic_default, config.declared):
        if row.name in texts:
            return row.parse(texts[row.name])
    return row.default


def synonyms_of(name: str, config: BrokerConfig, dynamic: Texts, dynamic_default: Texts) -> list[ConfigSynonym]:
    """Return the synonyms of the broker's property `name`, most important first."""
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
    """The names that mean one thing in different units, by each of them; only where a topic overrides that thing."""
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

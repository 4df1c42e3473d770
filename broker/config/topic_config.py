"""The properties of a topic: names, bounds, and the `LogConfig` of its logs.

Most are derived from a broker-wide property (`log.segment.bytes` → `segment.bytes`), a `TopicDefault` in
`odradek.broker.config.tables`. A property that a topic does not set has the broker-wide value: set at run time, else in
the broker's file, else the default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from odradek.broker.config.bounds import Bound, at_least
from odradek.broker.config.broker_config import PROPERTIES, BrokerConfig, effective_value
from odradek.broker.config.describe import NOTHING, ConfigRow, ConfigSource, ConfigSynonym, Texts, synonyms_of
from odradek.broker.config.property import LogProperty, TopicDefault, attribute_name, parse_within
from odradek.broker.config.types import BOOLEAN, LIST, LONG, InvalidValueError, Type, TypeCode, invalid_value
from odradek.broker.storage.log_config import LogConfig
from odradek.protocol.errors import ErrorCode, KafkaError


class TopicProperty(NamedTuple):
    """One row, like `odradek.broker.config.property.Property`; `broker` is the broker-wide row, if there is one."""

    name: str
    kind: Type[Any]
    default: Any
    bound: Bound | None
    doc: str
    broker: TopicDefault[Any] | None
    ignored_broker: str = ""  # its broker-wide name, if that property has no effect

    @property
    def sensitive(self) -> bool:
        return self.kind.code is TypeCode.PASSWORD

    def parse(self, text: str) -> Any:
        """Raises `InvalidValueError`."""
        return parse_within(self.kind, self.bound, text)


_REPLICAS = re.compile(r"[0-9]+:[0-9]+\Z")


_LEADERS = "leader.replication.throttled.replicas"
_FOLLOWERS = "follower.replication.throttled.replicas"


class _ThrottledReplicas(msgspec.Struct, frozen=True):
    """All replicas, or a list of some (Kafka's `ThrottledReplicaListValidator`)."""

    name: str

    def __call__(self, value: list[str]) -> None:
        if value != ["*"] and not all(_REPLICAS.match(item) for item in value):
            raise InvalidValueError(
                f"{self.name} must be the literal '*' or a list of replicas in the following format: {self}",
                f"[{', '.join(value)}]",
            )

    def __str__(self) -> str:
        return "[partitionId]:[brokerId],[partitionId]:[brokerId],..."


def _no_tiered_storage(value: bool) -> None:
    if value:
        raise InvalidValueError("there is no tiered storage.")


_WITHOUT_BROKER_WIDE = (
    TopicProperty(
        _LEADERS, LIST, [], _ThrottledReplicas(_LEADERS),
        "Replicas whose leaders are throttled by replication quotas, which are not built yet.", None,
    ),
    TopicProperty(
        _FOLLOWERS, LIST, [], _ThrottledReplicas(_FOLLOWERS),
        "Replicas whose followers are throttled by replication quotas, which are not built yet.", None,
    ),
    TopicProperty("remote.storage.enable", BOOLEAN, False, _no_tiered_storage, "Tiered storage is not built.", None),
    TopicProperty("remote.log.copy.disable", BOOLEAN, False, None, "Tiered storage is not built.", None),
    TopicProperty("remote.log.delete.on.disable", BOOLEAN, False, None, "Tiered storage is not built.", None),
    TopicProperty(
        "local.retention.ms", LONG, -2, at_least(-2), "Tiered storage is not built.", None, "log.local.retention.ms"
    ),
    TopicProperty(
        "local.retention.bytes", LONG, -2, at_least(-2), "Tiered storage is not built.", None,
        "log.local.retention.bytes",
    ),
)  # fmt: skip


def _with_broker_wide(row: TopicDefault[Any]) -> TopicProperty:
    assert row.topic is not None
    return TopicProperty(row.topic, row.kind, effective_value(row, {}), row.topic_bound, row.documentation, row)


_LOG_PROPERTIES = tuple(row for row in PROPERTIES.values() if isinstance(row, LogProperty))

TOPIC_PROPERTIES: dict[str, TopicProperty] = {
    row.name: row
    for row in (
        *(_with_broker_wide(row) for row in _LOG_PROPERTIES if isinstance(row, TopicDefault)),
        *_WITHOUT_BROKER_WIDE,
    )
}


def validate(overrides: Mapping[str, str | None], defaults: LogConfig | None = None) -> None:
    """Check a topic's properties as a client sent them.

    `defaults` are the broker-wide values, for rules between properties. Raises `KafkaError` INVALID_CONFIG with the
    name of the property.
    """
    parsed = {name: _parse(name, text) for name, text in overrides.items()}
    effective = defaults or LogConfig()
    shortest = parsed.get("min.compaction.lag.ms", effective.min_compaction_lag_ms)
    longest = parsed.get("max.compaction.lag.ms", effective.max_compaction_lag_ms)
    if shortest > longest:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})"
        )


def log_config(config: BrokerConfig, overrides: Texts = NOTHING) -> LogConfig:
    """Return the configuration of the logs of a topic with `overrides`, on a broker with `config`.

    Raises `KafkaError` as `override` does.
    """
    fields = {row.log_field: _as_field(getattr(config, attribute_name(row.name))) for row in _LOG_PROPERTIES}
    return override(LogConfig(**fields), overrides)


def override(broker_wide: LogConfig, overrides: Texts) -> LogConfig:
    """Return `broker_wide` with what a topic overrides.

    Skips names that this version does not have: another version wrote them. Raises `KafkaError` INVALID_CONFIG for a
    value that `validate` would have refused.
    """
    fields = {
        row.broker.log_field: _as_field(_parse(name, text))
        for name, text in overrides.items()
        if (row := TOPIC_PROPERTIES.get(name)) is not None and row.broker is not None
    }
    return msgspec.structs.replace(broker_wide, **fields) if fields else broker_wide


def describe(
    config: BrokerConfig,
    overrides: Texts = NOTHING,
    *,
    dynamic: Texts = NOTHING,
    dynamic_default: Texts = NOTHING,
) -> list[ConfigRow]:
    """Return every row of a topic. `dynamic`: the broker's run-time properties; `dynamic_default`: of all brokers."""
    effective = config.altered({**dynamic_default, **dynamic})
    return [
        _describe(row, overrides, effective, _broker_synonyms(row, config, dynamic, dynamic_default))
        for row in TOPIC_PROPERTIES.values()
    ]


def _broker_synonyms(
    row: TopicProperty, config: BrokerConfig, dynamic: Texts, dynamic_default: Texts
) -> list[ConfigSynonym]:
    if row.broker is not None:
        return synonyms_of(row.broker.name, config, dynamic, dynamic_default)
    if row.ignored_broker:
        return synonyms_of(row.ignored_broker, config, dynamic, dynamic_default)
    return []


def _describe(
    row: TopicProperty, overrides: Texts, effective: BrokerConfig, synonyms: list[ConfigSynonym]
) -> ConfigRow:
    if row.name in overrides:
        value = row.kind.text(row.parse(overrides[row.name]))
        synonyms = [ConfigSynonym(row.name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG), *synonyms]
    elif row.ignored_broker:
        value = synonyms[0].value
    else:
        value = row.kind.text(getattr(effective, attribute_name(row.broker.name)) if row.broker else row.default)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    return ConfigRow(
        name=row.name,
        value=value,
        source=source,
        is_default=source is ConfigSource.DEFAULT_CONFIG,
        read_only=False,
        sensitive=row.sensitive,
        synonyms=synonyms,
        type=row.kind.code,
        documentation=row.doc,
    )


def _as_field(value: Any) -> Any:
    return frozenset(value) if isinstance(value, list) else value


def _parse(name: str, text: str | None) -> Any:
    row = TOPIC_PROPERTIES.get(name)
    if row is None:
        raise _invalid(f"Unknown topic config name: {name}{_hint(name)}")
    if text is None:
        raise _invalid(f"Null value not supported for topic configs: {name}")
    try:
        return row.parse(text)
    except InvalidValueError as error:
        raise _invalid(invalid_value(name, text, error)) from None


def _hint(name: str) -> str:
    import difflib

    if name in PROPERTIES and PROPERTIES[name].topic is not None:
        return f"; {name} is broker-wide, a topic has {PROPERTIES[name].topic}"
    nearest = difflib.get_close_matches(name, TOPIC_PROPERTIES, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, detail)

"""The properties of a single group: names, bounds, values. Source: Kafka's `GroupConfig`.

| property | broker-wide | bounds |
|---|---|---|
| consumer.session.timeout.ms | group.consumer.session.timeout.ms | group.consumer.min…, group.consumer.max… |
| consumer.heartbeat.interval.ms | group.consumer.heartbeat.interval.ms | the same |
| consumer.assignment.interval.ms | group.consumer.assignment.interval.ms | the same |

Properties belong to a group id, whether the group exists (any more) or not. They apply to groups of the consumer
protocol (KIP-848); members of the classic protocol have their own times. The default is the broker-wide property.

Differs from Kafka: `share.…` and `streams.…` are refused, because there are no share groups and no streams groups.
"""

from __future__ import annotations

import msgspec

from odradek.broker.config.broker_config import PROPERTIES, BrokerConfig
from odradek.broker.config.describe import (
    NOTHING,
    ConfigRow,
    ConfigSource,
    ConfigSynonym,
    Texts,
    own_value,
    synonyms_of,
)
from odradek.broker.config.property import Property, attribute_name
from odradek.broker.config.types import InvalidValueError, invalid_value
from odradek.protocol.errors import ErrorCode, KafkaError

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL = "consumer.assignment.interval.ms"

_PREFIX = "group."

GROUP_PROPERTIES: dict[str, Property[int]] = {
    name: PROPERTIES[_PREFIX + name] for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL, ASSIGNMENT_INTERVAL)
}
"""The broker-wide rows by the name of the group property."""


class GroupConfig(msgspec.Struct, frozen=True):
    """The properties of one group, in milliseconds. The names are those of `GROUP_PROPERTIES`, with underscores."""

    consumer_session_timeout_ms: int
    consumer_heartbeat_interval_ms: int
    consumer_assignment_interval_ms: int


def validate(config: BrokerConfig, overrides: Texts) -> None:
    """Check a group's properties as a client sent them. Raises `KafkaError` INVALID_CONFIG, naming the property."""
    values = {name: getattr(config, _attribute(name)) for name in GROUP_PROPERTIES}
    values |= {name: _parse(name, text) for name, text in overrides.items()}
    for name, value in values.items():
        low, high = _bounds(name)
        least, most = getattr(config, _attribute(low)), getattr(config, _attribute(high))
        if not least <= value <= most:
            bounds = f"{_PREFIX}{low} and {_PREFIX}{high}"
            raise _invalid(f"{name} must be in the range {least} to {most} inclusive. ({bounds})")
    if values[SESSION_TIMEOUT] <= values[HEARTBEAT_INTERVAL]:
        raise _invalid(f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}")


def group_config(config: BrokerConfig, overrides: Texts = NOTHING) -> GroupConfig:
    """Return the configuration of a group with `overrides`, on a broker with `config`.

    A value beyond the broker's bounds, which may be narrower than when it was set, is replaced by the bound. Names that
    this version does not have are skipped: another version wrote them.
    """
    broker_wide = GroupConfig(
        config.group_consumer_session_timeout_ms,
        config.group_consumer_heartbeat_interval_ms,
        config.group_consumer_assignment_interval_ms,
    )
    own = {attribute_name(name): value for name, value in _overridden(config, overrides).items()}
    return msgspec.structs.replace(broker_wide, **own) if own else broker_wide


def _overridden(config: BrokerConfig, overrides: Texts) -> dict[str, int]:
    values = {}
    for name, text in overrides.items():
        if name in GROUP_PROPERTIES:
            low, high = (getattr(config, _attribute(bound)) for bound in _bounds(name))
            values[name] = min(max(_parse(name, text), low), high)
    return values


def describe(
    config: BrokerConfig, overrides: Texts = NOTHING, *, dynamic: Texts = NOTHING, dynamic_default: Texts = NOTHING
) -> list[ConfigRow]:
    """Return every row of a group. `dynamic`: the broker's run-time properties; `dynamic_default`: of all brokers."""
    own = _overridden(config, overrides)
    rows = []
    for name, row in GROUP_PROPERTIES.items():
        value = own.get(name, own_value(row, config, dynamic, dynamic_default))
        synonyms = synonyms_of(row.name, config, dynamic, dynamic_default)
        if name in own:
            synonyms.insert(0, ConfigSynonym(name, row.kind.text(value), ConfigSource.DYNAMIC_GROUP_CONFIG))
        rows.append(_row(name, row, value, synonyms))
    return rows


def _row(name: str, row: Property[int], value: int, synonyms: list[ConfigSynonym]) -> ConfigRow:
    return ConfigRow(
        name=name,
        value=row.kind.text(value),
        source=synonyms[0].source,
        is_default=synonyms[0].source is ConfigSource.DEFAULT_CONFIG,
        read_only=False,
        sensitive=False,
        synonyms=synonyms,
        type=row.kind.code,
        documentation=row.documentation,
    )


def _attribute(name: str) -> str:
    """Return the broker's attribute of a property, whose name is without the prefix."""
    return attribute_name(_PREFIX + name)


def _bounds(name: str) -> tuple[str, str]:
    """Return the names, without prefix, of the properties with its bounds."""
    kind, rest = name.split(".", 1)
    return f"{kind}.min.{rest}", f"{kind}.max.{rest}"


def _parse(name: str, text: str) -> int:
    row = GROUP_PROPERTIES.get(name)
    if row is None:
        kind = name.split(".", 1)[0]
        reason = f": {kind} groups are not built" if kind in ("share", "streams") else ""
        raise _invalid(f"Unknown group config name: {name}{reason}")
    try:
        return row.parse(text)
    except InvalidValueError as error:
        raise _invalid(invalid_value(name, text, error)) from None


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, detail)

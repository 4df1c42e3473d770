"""The broker's configuration: loaded from a file and overrides, checked as a whole, and immutable.

```
file entries ─┐   known name?      parse, bound     unset: fallback      rules between
overrides ────┴─► (nearest match) ─────────────────► or default ────────► properties ────► BrokerConfig
                        └─► listener.name.… : of one listener (`listener_config`)
```

An override replaces the file's entry of the same name. All errors are reported together. Properties that are set at run
time create another configuration (`altered`); `metadata.current_config` has the one that holds now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from odradek.broker.config.endpoints import Endpoint
from odradek.broker.config.errors import ConfigError
from odradek.broker.config.ignored_properties import (
    IGNORED_PROPERTIES,
    IgnoredProperty,
    reason_ignored,
    reasons_by_name,
)
from odradek.broker.config.listener_config import (
    LISTENER_PROPERTIES,
    PREFIX,
    ListenerConfig,
    NoListenerPropertyError,
    listener_of,
    listener_property,
)
from odradek.broker.config.property import Property, SecuredProperty, Table, attribute_name
from odradek.broker.config.rules import broken_rules, security_protocols
from odradek.broker.config.security_rules import broken_security_rules
from odradek.broker.config.tables.access import AccessProperties
from odradek.broker.config.tables.cluster import (
    LeaderBalanceProperties,
    MembershipProperties,
    MetadataStoreProperties,
    ReplicationProperties,
)
from odradek.broker.config.tables.consumer_groups import ConsumerGroupProperties
from odradek.broker.config.tables.groups import GroupProperties
from odradek.broker.config.tables.identity import IdentityProperties, LogDirProperties
from odradek.broker.config.tables.log import (
    CompactionProperties,
    RecordProperties,
    RetentionProperties,
    SegmentProperties,
)
from odradek.broker.config.tables.network import ListenerLimitProperties, NetworkProperties
from odradek.broker.config.tables.observability import ObservabilityProperties
from odradek.broker.config.tables.quotas import QuotaProperties
from odradek.broker.config.tables.sasl import OAuthBearerProperties, SaslProperties
from odradek.broker.config.tables.tls import TlsProperties
from odradek.broker.config.tables.topics import TopicProperties
from odradek.broker.config.tables.transactions import TransactionProperties
from odradek.broker.config.tables.workers import WorkerProperties
from odradek.broker.config.types import InvalidValueError, parse_list, problem_of
from odradek.protocol.java_properties import MalformedPropertiesError, decode, parse

_NODE_ID = ("node.id", "broker.id")

OfListeners = Mapping[tuple[str, str], Mapping[str, Any]]
"""Values of single listeners by listener and mechanism; the mechanism is empty for all of a listener's."""


class Setting(NamedTuple):
    """The text of one property, and its origin: a line of the file, or an override."""

    text: str
    origin: str


class BrokerConfig(
    IdentityProperties,
    LogDirProperties,
    MetadataStoreProperties,
    MembershipProperties,
    LeaderBalanceProperties,
    ReplicationProperties,
    WorkerProperties,
    NetworkProperties,
    ListenerLimitProperties,
    TlsProperties,
    SaslProperties,
    OAuthBearerProperties,
    AccessProperties,
    TopicProperties,
    RetentionProperties,
    SegmentProperties,
    RecordProperties,
    CompactionProperties,
    ConsumerGroupProperties,
    GroupProperties,
    TransactionProperties,
    QuotaProperties,
    ObservabilityProperties,
    Table,
):
    """Every property's effective value as a plain attribute: the name with underscores, such as `log_segment_bytes`.

    Immutable. `declared` has the text of each property that was set, by dotted name, those without effect included;
    `warnings` has a sentence for each property that was set and has no effect here.
    """

    declared: Mapping[str, str]
    warnings: tuple[str, ...]
    _of_listeners: OfListeners

    @classmethod
    def load(cls, path: str | Path | None = None, overrides: Mapping[str, str] | None = None) -> BrokerConfig:
        """Load the file at `path`, if any, and apply `overrides`. Raises `ConfigError`."""
        problems: list[str] = []
        settings = _read(Path(path), problems) if path is not None else {}
        settings |= {name: Setting(text, "override") for name, text in (overrides or {}).items()}
        known, warnings = _known(settings, problems)
        values = _effective(_parsed(known, problems))
        of_listeners: OfListeners = {}
        if not problems:
            controllers = _controllers(settings)
            values |= _without_controllers(values, controllers)
            of_listeners = _of_listeners(settings, values["listeners"], controllers, known, warnings, problems)
        if not problems:
            problems = broken_rules(values, known.keys())
        if problems:
            raise ConfigError(problems)
        declared = {name: setting.text for name, setting in known.items()}
        if not declared.keys().isdisjoint(_NODE_ID):
            # As in Kafka, setting one of the two names sets both.
            declared |= dict.fromkeys(_NODE_ID, str(values["node.id"]))
        config = cls(values | {"broker.id": values["node.id"]}, declared, tuple(warnings), of_listeners)
        if problems := broken_security_rules(config):
            raise ConfigError(problems)
        return config

    def __init__(
        self,
        values: Mapping[str, Any],
        declared: Mapping[str, str],
        warnings: tuple[str, ...],
        of_listeners: OfListeners,
    ) -> None:
        # In the instance's dictionary, which takes precedence over descriptors without __set__.
        self.__dict__.update({attribute_name(name): value for name, value in values.items()})
        self.__dict__["declared"] = dict(declared)
        self.__dict__["warnings"] = warnings
        self.__dict__["_of_listeners"] = of_listeners

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"the configuration is immutable: {name}")

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that brokers use among themselves: as configured, else the first one.

        As in Kafka, security.inter.broker.protocol names the listener of that name.
        """
        named = self.inter_broker_listener_name or self.declared.get("security.inter.broker.protocol", "").strip()
        return named or self.listeners[0].name

    def listener(self, name: str, mechanism: str = "") -> ListenerConfig:
        """Return the properties that hold for a listener, or for one mechanism of it."""
        values = {each: getattr(self, attribute_name(each)) for each in LISTENER_PROPERTIES}
        for key in dict.fromkeys(((name, ""), (name, mechanism))):
            values |= self._of_listeners.get(key, {})
        return ListenerConfig(values)

    def listener_value(self, listener: str, name: str) -> Any:
        """Return the value of a property that is set for this listener itself; None if it is not."""
        return self._of_listeners.get((listener, ""), {}).get(name)

    def listener_row(self, name: str) -> Property[Any] | None:
        """Return the row of a property of a single listener, `listener.name.…`; None for any other name."""
        if not name.startswith(PREFIX):
            return None
        try:
            _, _, row = listener_property(name, [endpoint.name for endpoint in self.listeners])
        except NoListenerPropertyError:
            return None
        return row

    def altered(self, dynamic: Mapping[str, str]) -> BrokerConfig:
        """Return the configuration with the run-time properties `dynamic` applied.

        Skips unknown names and properties that need a restart, because another version may have written them; invalid
        values and properties without effect also add a warning.
        """
        parsed = {name: PROPERTIES[name].parse(text) for name, text in self.declared.items() if name in PROPERTIES}
        warnings = []
        for name, text in dynamic.items():
            if isinstance(PROPERTIES.get(name), SecuredProperty):
                continue  # only the file sets it: see `alter_configs`
            if name in PROPERTIES:
                try:
                    parsed[name] = PROPERTIES[name].parse(text)
                except InvalidValueError as error:
                    warnings.append(f"{name} ({text!r}, set at run time) has no effect: {error}")
            elif name in IGNORED_PROPERTIES:
                warnings.append(f"{name} (set at run time) has no effect: {IGNORED_PROPERTIES[name].reason}")
        changed = {row.name: effective_value(row, parsed) for row in PROPERTIES.values() if row.dynamic}
        of_listeners = {**self._of_listeners, **self._altered_listeners(dynamic)}
        return BrokerConfig(self._values() | changed, self.declared, (*self.warnings, *warnings), of_listeners)

    def _altered_listeners(self, dynamic: Mapping[str, str]) -> OfListeners:
        """Return the values of the listeners for which `dynamic` sets limits."""
        altered: dict[tuple[str, str], dict[str, Any]] = {}
        for name, text in dynamic.items():
            row = self.listener_row(name)
            if row is not None and row.dynamic and not isinstance(row, SecuredProperty | IgnoredProperty):
                listener, mechanism, _ = listener_property(name, [endpoint.name for endpoint in self.listeners])
                values = altered.setdefault(
                    (listener, mechanism), dict(self._of_listeners.get((listener, mechanism), {}))
                )
                values[row.name] = row.parse(text)
        return altered

    def broken_rules(self) -> list[str]:
        """Return a sentence for each broken rule between properties."""
        return broken_rules(self._values(), self.declared.keys())

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, attribute_name(name)) for name in PROPERTIES}

    def security_protocol(self, listener_name: str) -> str:
        """Return the security protocol of a listener's name."""
        return security_protocols(self.listener_security_protocol_map)[listener_name]

    def certified_name(self, listener_name: str) -> str | None:
        """Return the host of a listener with TLS in `listeners`, if it is a name; else None.

        Clients of the listener must connect to this name, because they compare it with the broker's certificate.
        """
        host = next((each.host for each in self.listeners if each.name == listener_name and each.is_name), None)
        return host if host and self.security_protocol(listener_name) in ("SSL", "SASL_SSL") else None


PROPERTIES: dict[str, Property[Any]] = BrokerConfig.properties()
DESCRIBED_PROPERTIES: dict[str, Property[Any]] = {**PROPERTIES, **IGNORED_PROPERTIES}
"""Every property that can be set and described, those without effect included."""


def _read(path: Path, problems: list[str]) -> dict[str, Setting]:
    try:
        entries = parse(decode(path.read_bytes()))
    except OSError as error:
        raise ConfigError([f"cannot read {path}: {error.strerror}"]) from error
    except MalformedPropertiesError as error:
        raise ConfigError([f"{path}, {error}"]) from error
    lines: dict[str, int] = {}
    for entry in entries:
        if entry.key in lines:
            problems.append(f"{entry.key} is set twice: {path}, lines {lines[entry.key]} and {entry.line}")
        lines.setdefault(entry.key, entry.line)
    return {entry.key: Setting(entry.value, f"{path}, line {entry.line}") for entry in entries}


def _known(settings: Mapping[str, Setting], problems: list[str]) -> tuple[dict[str, Setting], list[str]]:
    """Return the settings that are not of a single listener, and warnings."""
    known: dict[str, Setting] = {}
    warnings = []
    for name, setting in settings.items():
        if name.startswith(PREFIX):
            continue
        if name in PROPERTIES:
            known[name] = setting
        elif (reason := reason_ignored(name)) is not None:
            if name in IGNORED_PROPERTIES:
                known[name] = setting
            warnings.append(f"{name} ({setting.origin}) has no effect: {reason}")
        else:
            problems.append(f"unknown property {name} ({setting.origin}){nearest_name(name)}")
    return known, warnings


def _of_listeners(
    settings: Mapping[str, Setting],
    listeners: Sequence[Endpoint],
    controllers: Collection[str],
    known: dict[str, Setting],
    warnings: list[str],
    problems: list[str],
) -> OfListeners:
    """Return the values of single listeners, and add what has a meaning to `known`."""
    of_listeners: dict[tuple[str, str], dict[str, Any]] = {}
    names = [endpoint.name for endpoint in listeners]
    for name, setting in settings.items():
        if not name.startswith(PREFIX):
            continue
        if listener_of(name, names) is None and (controller := listener_of(name, controllers)) is not None:
            warnings.append(f"{name} ({setting.origin}) has no effect: {controller} is a listener of controllers")
            continue
        try:
            listener, mechanism, row = listener_property(name, names)
        except NoListenerPropertyError as error:
            problems.append(f"{name} ({setting.origin}): {error}")
            continue
        known[name] = setting
        if isinstance(row, IgnoredProperty):
            warnings.append(f"{name} ({setting.origin}) has no effect: {row.reason}")
        _parse(row, name, setting, of_listeners.setdefault((listener, mechanism), {}), problems)
    return of_listeners


def _controllers(settings: Mapping[str, Setting]) -> set[str]:
    setting = settings.get("controller.listener.names")
    return {name.upper() for name in parse_list(setting.text.strip())} if setting is not None else set()


def _without_controllers(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the listeners without those in controller.listener.names, which have no use here."""
    return {
        name: [endpoint for endpoint in values[name] if endpoint.name not in names]
        for name in ("listeners", "advertised.listeners")
        if values[name] is not None
    }


def nearest_name(name: str) -> str:
    """Return the end of an error about an unknown name: the name that was probably intended, or nothing."""
    import difflib

    for row in PROPERTIES.values():
        if name == row.topic:
            return f": a topic has it; for all topics it is {row.name}"
    nearest = difflib.get_close_matches(name, [*PROPERTIES, *reasons_by_name()], n=1, cutoff=0.6)
    return f": did you mean {nearest[0]}?" if nearest else ""


def _parsed(known: Mapping[str, Setting], problems: list[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for name, setting in known.items():
        _parse(DESCRIBED_PROPERTIES[name], name, setting, parsed, problems)
    return parsed


def _parse(row: Property[Any], name: str, setting: Setting, parsed: dict[str, Any], problems: list[str]) -> None:
    """Add the value of a setting to `parsed` under its row's name, or a problem."""
    try:
        parsed[row.name] = row.parse(setting.text)
    except InvalidValueError as error:
        shown = "(hidden)" if row.sensitive else repr(setting.text)
        problems.append(f"{name} = {shown} ({setting.origin}): {problem_of(name, error)}")


def _effective(parsed: Mapping[str, Any]) -> dict[str, Any]:
    return {row.name: effective_value(row, parsed) for row in PROPERTIES.values()}


def effective_value(row: Property[Any], parsed: Mapping[str, Any]) -> Any:
    """Return the value of `row` when `parsed` is set: its own, else that of a fallback, else a default.

    Negative times mean "never" in every unit and are not multiplied.
    """
    if row.name in parsed:
        return parsed[row.name]
    for name, factor in row.fallback:
        if name in parsed:
            return scaled(parsed[name], factor)
    if row.default is None and row.fallback:
        last = row.fallback[-1]
        return scaled(PROPERTIES[last.name].default, last.factor)
    return row.default


def scaled(value: Any, factor: int) -> Any:
    return value if factor == 1 else -1 if value < 0 else value * factor

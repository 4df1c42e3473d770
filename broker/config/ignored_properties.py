"""Kafka's broker properties without effect here, each with the reason.

They are read from `server.properties`, stored, and described as in Kafka: with type, default and sources. Setting one
logs a warning, so that an existing file can be used as it is. Together with the other tables these are all properties
of Kafka 4.3.1.

`REMOVED` has names that are in no `ConfigDef` of Kafka 4.3.1: those of older versions, of plug-ins, and internal ones.
They are allowed in the file, with a warning, and not described; at run time they are refused. `PREFIXES` are families
of names without a fixed list.

What would be dangerous to ignore is refused (`security_rules`).
"""

from __future__ import annotations

import re
from typing import Any

from odradek.broker.config.bounds import Bound, OneOf, OneOfAnyCase, Range
from odradek.broker.config.property import Property
from odradek.broker.config.tables.ignored_table import TABLE
from odradek.broker.config.types import (
    BOOLEAN,
    CLASS,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    InvalidValueError,
    Type,
)

_OLD = "Kafka removed it in 4.0 or before"
_TIERED = "tiered storage is not built"

_REMOVED = {
    "delegation tokens are not built yet": "delegation.token.master.key",
    "a broker that stops waits up to 30 seconds until others lead": """
        controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms""",
    "every preferred replica that is in sync is elected, as in Kafka with KRaft": """
        leader.imbalance.per.broker.percentage""",
    "every node is broker and controller, and metadata is kept in a store, not in a Raft log": """
        metadata.log.segment.min.bytes unstable.api.versions.enable unstable.feature.versions.enable""",
    "metrics are read over HTTP from metrics.port": "auto.include.jmx.reporter",
    "share groups are not built": "group.share.enable",
    _OLD: """
        group.coordinator.new.enable offsets.commit.required.acks
        advertised.host.name advertised.port broker.id.generation.enable control.plane.listener.name host.name
        inter.broker.protocol.version log.message.downconversion.enable log.message.format.version
        log.message.timestamp.difference.max.ms port reserved.broker.max.id zookeeper.clientCnxnSocket
        zookeeper.connect zookeeper.connection.timeout.ms zookeeper.max.in.flight.requests
        zookeeper.metadata.migration.enable zookeeper.session.timeout.ms zookeeper.set.acl""",
}
REMOVED: dict[str, str] = {name: reason for reason, names in _REMOVED.items() for name in names.split()}
"""Reasons by name."""

PREFIXES = {
    "password.encoder.": _OLD,
    "rlmm.config.": _TIERED,
    "rsm.config.": _TIERED,
    "zookeeper.ssl.": _OLD,
}

_TYPES: dict[str, Type[Any]] = {
    kind.code.name: kind for kind in (BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, STRING)
}
_RANGE = re.compile(r"\[(-?\d+),\.\.\.(?:,(-?\d+))?\]\Z")
_ANY_CASE = "(case insensitive) "
_FLAGS = ("dynamic", "not here")


class IgnoredProperty(Property[Any]):
    """A property without effect, for the given `reason`. `is_settable`: it may be set at run time.

    `dynamic` is Kafka's value in DescribeConfigs; some dynamic properties cannot be set here.
    """

    def __init__(
        self, name: str, kind: Type[Any], default: Any, bound: Bound | None, reason: str, flag: str | None
    ) -> None:
        super().__init__(name, kind, default, bound, doc=f"It has no effect here: {reason}.", dynamic=flag is not None)
        self.reason = reason
        self.is_settable = flag == "dynamic"


def reason_ignored(name: str) -> str | None:
    """Return the reason why a name of Kafka, present or former, has no effect here; None for other names."""
    row = IGNORED_PROPERTIES.get(name)
    if row is not None:
        return row.reason
    reason = REMOVED.get(name)
    if reason is None:
        reason = next((reason for prefix, reason in PREFIXES.items() if name.startswith(prefix)), None)
    return reason


def reasons_by_name() -> dict[str, str]:
    """Return the reason by name, for all names except the families in `PREFIXES`."""
    return {**{row.name: row.reason for row in IGNORED_PROPERTIES.values()}, **REMOVED}


def _row(line: str, reason: str) -> IgnoredProperty:
    name, kind_name, default, *rest = re.split(r"\s{2,}", line.strip())
    flag = rest.pop() if rest and rest[-1] in _FLAGS else None
    kind = _TYPES[kind_name]
    value = None if default == "null" else kind.parse("" if default == '""' else default)
    return IgnoredProperty(name, kind, value, _bound(rest[0]) if rest else None, reason, flag)


def _bound(notation: str) -> Bound:
    """Return the bound that Kafka writes as `notation`."""
    if notation.startswith("non-empty"):
        return _not_empty
    found = _RANGE.match(notation)
    if found is not None:
        low, high = found.groups()
        return Range(int(low), None if high is None else int(high))
    words = tuple(notation.removeprefix(_ANY_CASE)[1:-1].split(", "))
    return OneOfAnyCase(words) if notation.startswith(_ANY_CASE) else OneOf(words)


def _not_empty(value: str | list[str]) -> None:
    if not value:
        raise InvalidValueError("String must be non-empty")


IGNORED_PROPERTIES: dict[str, IgnoredProperty] = {
    row.name: row
    for row in (_row(line, reason) for reason, lines in TABLE.items() for line in lines.strip().splitlines())
}

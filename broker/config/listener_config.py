"""The properties of single listeners, and of single mechanisms of them, over those of all listeners.

```
listener.name.external.scram-sha-256.sasl.jaas.config    of one mechanism of the listener EXTERNAL
listener.name.external.ssl.keystore.location             of the listener
ssl.keystore.location                                    of all listeners
```

The first of these that is set counts, then the default, as in Kafka (`ListenerName.configPrefix` and
`saslMechanismPrefix`, `AbstractConfig.valuesWithPrefixOverride`). In the names, listener and mechanism are in lower
case. The tables whose properties may differ are the bases of `ListenerConfig`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from odradek.broker.config.ignored_properties import IGNORED_PROPERTIES
from odradek.broker.config.property import Property, Table, attribute_name
from odradek.broker.config.tables.network import ListenerLimitProperties
from odradek.broker.config.tables.sasl import OAuthBearerProperties, SaslProperties
from odradek.broker.config.tables.tls import TlsProperties

PREFIX = "listener.name."
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The mechanisms of authentication, by their registered names."""
_MECHANISM_PREFIXES = {f"{name.lower()}.": name for name in (*MECHANISMS, "GSSAPI")}


class ListenerConfig(TlsProperties, SaslProperties, OAuthBearerProperties, ListenerLimitProperties, Table):
    """Every property of one listener, or of one mechanism of it, as a plain attribute."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update({attribute_name(name): values[name] for name in LISTENER_PROPERTIES})


LISTENER_PROPERTIES: dict[str, Property[Any]] = ListenerConfig.properties()
_OF_MECHANISMS = {**SaslProperties.properties(), **OAuthBearerProperties.properties()}


class ListenerProperty(NamedTuple):
    """The parts of a name that begins with `PREFIX`; `mechanism` is empty for all of the listener's."""

    listener: str
    mechanism: str
    row: Property[Any]


class NoListenerPropertyError(ValueError):
    """A name that begins with `PREFIX` and means nothing; the message says why."""


def listener_property(name: str, listeners: Collection[str]) -> ListenerProperty:
    """Take apart a name that begins with `PREFIX`. Raises `NoListenerPropertyError`."""
    rest = name.removeprefix(PREFIX)
    found = listener_of(name, listeners)
    if found is None:
        known = ", ".join(sorted(each.lower() for each in listeners))
        raise NoListenerPropertyError(f"there is no such listener; {PREFIX}… is followed by one of {known}")
    rest = rest[len(found) + 1 :]
    mechanism = ""
    for prefix, its_name in _MECHANISM_PREFIXES.items():
        if rest.startswith(prefix):
            mechanism, rest = its_name, rest.removeprefix(prefix)
    rows = _OF_MECHANISMS if mechanism else LISTENER_PROPERTIES
    row = rows.get(rest) or _ignored(rest)
    if row is None:
        what = "a mechanism" if mechanism else "a listener"
        raise NoListenerPropertyError(f"{what} has no property {rest}{_nearest(rest, rows)}")
    return ListenerProperty(found, mechanism, row)


def listener_of(name: str, listeners: Collection[str]) -> str | None:
    """Return the listener, in upper case, that a name beginning with `PREFIX` is about, or None."""
    rest = name.removeprefix(PREFIX)
    found = [each for each in listeners if rest.startswith(f"{each.lower()}.")]  # a name may contain dots
    return max(found, key=len, default=None)


def _ignored(name: str) -> Property[Any] | None:
    """Return a property without effect that may have the prefix in Kafka."""
    return IGNORED_PROPERTIES.get(name) if name.startswith(("ssl.", "sasl.", "num.network.threads")) else None


def _nearest(name: str, rows: Collection[str]) -> str:
    import difflib

    nearest = difflib.get_close_matches(name, rows, n=1, cutoff=0.6)
    return f": did you mean {nearest[0]}?" if nearest else ""

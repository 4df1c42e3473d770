"""The fields that a trace never shows.

| field | of |
|---|---|
| `auth_bytes` | SaslAuthenticate, both ways |
| `salt`, `salted_password` | AlterUserScramCredentials |
| `hmac` | delegation tokens: its base64 is their password |
| `value` beside a `name` | configs, unless the name is that of a property which is no password |

A config of an unknown name is hidden, because plug-ins and listeners have passwords under names of their own; so does
Kafka in DescribeConfigs.
"""

from __future__ import annotations

from functools import cache

from odradek.broker.config.broker_config import DESCRIBED_PROPERTIES
from odradek.broker.config.group_config import GROUP_PROPERTIES
from odradek.broker.config.topic_config import TOPIC_PROPERTIES
from odradek.protocol.schema import Structure, fields

_SECRET = frozenset({"auth_bytes", "hmac", "salt", "salted_password"})


def hidden_fields(structure: Structure) -> frozenset[str]:
    """Return the names of the fields of this structure that must not be shown."""
    cls = type(structure)
    hidden = _secret_fields(cls)
    if _is_config(cls) and not _is_harmless(structure):
        hidden |= {"value"}
    return hidden


@cache
def _secret_fields(cls: type[Structure]) -> frozenset[str]:
    return _SECRET & {field.name for field in fields(cls)}


@cache
def _is_config(cls: type[Structure]) -> bool:
    kinds = {field.name: getattr(field.kind, "name", "") for field in fields(cls)}
    return kinds.get("name") == kinds.get("value") == "string"


def _is_harmless(structure: Structure) -> bool:
    return not getattr(structure, "is_sensitive", False) and getattr(structure, "name", "") in _harmless_names()


@cache
def _harmless_names() -> frozenset[str]:
    tables = (DESCRIBED_PROPERTIES, TOPIC_PROPERTIES, GROUP_PROPERTIES)
    rows = [(name, row.sensitive) for table in tables for name, row in table.items()]
    return frozenset(name for name, _ in rows) - {name for name, is_sensitive in rows if is_sensitive}

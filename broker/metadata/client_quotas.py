"""Client quotas in the metadata store, and their part of the image.

```
/quotas/users/<user>                     {kind: limit}
/quotas/users/<user>/clients/<client id>
/quotas/clients/<client id>
/quotas/ips/<address>
```

A name is percent-encoded, so that it has no slash; `<default>`, which no encoded name equals, stands for the default of
a type. An entity without limits has no key. `quotas.entities` has the entities and the kinds of limits; limits of kinds
that this version does not have are kept, and have no effect.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

import msgspec

from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV
from odradek.broker.quotas.entities import CLIENT_ID, IP, USER, Entity, entity_of

StoredQuotas = dict[Entity, tuple[dict[str, float], int]]
"""Limits by kind, with the revision of their key, by entity."""

_DEFAULT: Final = "<default>"
_FOLDERS: Final = {USER: "users", CLIENT_ID: "clients", IP: "ips"}  # in the order of a key
_TYPES: Final = {folder: kind for kind, folder in _FOLDERS.items()}

_decode = msgspec.json.Decoder(dict[str, float]).decode
_encode = msgspec.json.Encoder().encode


def quota_key(keys: Keys, entity: Entity) -> bytes:
    """Return the key of a valid entity's limits."""
    names = dict(entity)
    parts = [f"{folder}/{_escape(names[kind])}" for kind, folder in _FOLDERS.items() if kind in names]
    return keys.client_quotas + "/".join(parts).encode()


def entity_at(keys: Keys, key: bytes) -> Entity:
    """Return the entity whose limits are at `key`. Raises ValueError."""
    words = key[len(keys.client_quotas) :].decode().split("/")
    if len(words) % 2 or any(folder not in _TYPES for folder in words[::2]):
        raise ValueError("this is no entity")
    pairs = zip(words[::2], words[1::2], strict=True)
    return entity_of((_TYPES[folder], None if name == _DEFAULT else unquote(name)) for folder, name in pairs)


def encode_limits(limits: dict[str, float]) -> bytes:
    return _encode(limits)


def apply_quota(keys: Keys, quotas: StoredQuotas, key: bytes, kv: KV | None) -> None:
    """Apply the change of one key to `quotas`, which no image has yet. Raises ValueError, msgspec.MsgspecError."""
    entity = entity_at(keys, key)
    if kv is None:
        quotas.pop(entity, None)
    else:
        quotas[entity] = _decode(kv.value), kv.mod_revision


def _escape(name: str | None) -> str:
    return _DEFAULT if name is None else quote(name, safe="")

"""The access rules in the metadata store, and in an image.

```
/security/rules/<id>   {"resource_type": "TOPIC", "pattern_type": "LITERAL", "name": "orders",
                        "principal": "User:alice", "host": "*", "operation": "READ", "permission": "ALLOW"}
```

The id is a hash of the rule, 22 characters as of a uuid. So a rule that is created twice, even on two brokers at once,
is one key, and the key of a rule is found without a search.

An image has the rules in 256 shards by their ids. The next image copies only the shards that a change
touches, and two images are compared shard by shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import NamedTuple
from zlib import crc32

import msgspec

from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.uuids import uuid_to_text

SHARDS = 256

_json = msgspec.json.Encoder().encode


class _Value(msgspec.Struct, frozen=True):
    """The value of a rule's key."""

    resource_type: str
    pattern_type: str
    name: str
    principal: str
    host: str
    operation: str
    permission: str


_decode = msgspec.json.Decoder(_Value).decode


def rule_id(rule: AccessRule) -> str:
    """Return the id of a rule, the same in every version of this program."""
    return uuid_to_text(sha256(_json([*msgspec.structs.astuple(rule)])).digest()[:16])


def encode_rule(rule: AccessRule) -> bytes:
    return _json(
        _Value(
            rule.resource_type.name,
            rule.pattern_type.name,
            rule.name,
            rule.principal,
            rule.host,
            rule.operation.name,
            rule.permission.name,
        )
    )


def decode_rule(key: str, value: bytes) -> AccessRule:
    """Return the rule that is stored under the id `key`.

    Raises `msgspec.MsgspecError`, or ValueError for a name that this version does not have, and for another rule's id.
    """
    stored = _decode(value)
    try:
        rule = AccessRule(
            ResourceType[stored.resource_type],
            PatternType[stored.pattern_type],
            stored.name,
            stored.principal,
            stored.host,
            Operation[stored.operation],
            PermissionType[stored.permission],
        )
    except KeyError as error:
        raise ValueError(f"unknown {error} in an access rule") from None
    if rule_id(rule) != key:
        raise ValueError(f"the access rule belongs at {rule_id(rule)}")
    return rule


class StoredRule(NamedTuple):
    """A rule of an image, and the revision that created it."""

    rule: AccessRule
    revision: int


Shard = Mapping[str, StoredRule]
"""The rules of a shard by their ids."""


class RulesChange(NamedTuple):
    """The step from the rules of one image to those of a later one."""

    removed: list[AccessRule]
    added: list[AccessRule]


class StoredRules:
    """The access rules of an image. Immutable."""

    __slots__ = ("_count", "_shards")

    def __init__(self, shards: tuple[Shard, ...] = ({},) * SHARDS, count: int = 0) -> None:
        """`count` is the number of rules in all shards."""
        self._shards = shards
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[AccessRule]:
        for shard in self._shards:
            for stored in shard.values():
                yield stored.rule

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The rules in portions, for searches in slices of time."""
        return self._shards

    def find(self, rule: AccessRule) -> StoredRule | None:
        """Return the rule as it is stored, None if it is not."""
        key = rule_id(rule)
        return self._shards[_shard_of(key)].get(key)

    def changed(self, changes: Mapping[str, StoredRule | None]) -> StoredRules:
        """Return the rules after changes by id; None: removed."""
        shards = list(self._shards)
        copies: dict[int, dict[str, StoredRule]] = {}
        count = self._count
        for key, stored in changes.items():
            number = _shard_of(key)
            shard = copies.get(number)
            if shard is None:
                shards[number] = shard = copies[number] = dict(shards[number])
            count -= key in shard
            if stored is None:
                shard.pop(key, None)
            else:
                shard[key] = stored
                count += 1
        return StoredRules(tuple(shards), count)

    def change_since(self, before: StoredRules) -> RulesChange:
        """Return the rules that these have and `before` had not, and the reverse."""
        change = RulesChange([], [])
        for old, new in zip(before.shards, self._shards, strict=True):
            if old is not new:
                change.removed.extend(old[key].rule for key in old.keys() - new.keys())
                change.added.extend(new[key].rule for key in new.keys() - old.keys())
        return change


def _shard_of(key: str) -> int:
    return crc32(key.encode()) % SHARDS

from __future__ import annotations

import msgspec
import pytest

from odradek.broker.metadata.image import MetadataImage
from odradek.broker.metadata.image_builder import UnreadableValueError, next_image
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.store import KV, Batch, Change
from odradek.broker.metadata.stored_rules import StoredRule, StoredRules, decode_rule, encode_rule, rule_id
from odradek.broker.security.access.rule import AccessRule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType

KEYS = Keys()
RULE = AccessRule(
    ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*", Operation.READ, PermissionType.ALLOW
)
MANY = [msgspec.structs.replace(RULE, name=f"orders-{number}") for number in range(1000)]


def stored(*rules: AccessRule) -> dict[str, StoredRule | None]:
    return {rule_id(rule): StoredRule(rule, 1) for rule in rules}


def kv(key: bytes, value: bytes) -> Batch:
    return Batch(7, (Change(key, KV(key, value, 7, 7)),))


def test_the_id_of_a_rule_is_the_same_in_every_version() -> None:
    assert rule_id(RULE) == "kFih9ONdbuePUc2nksZm8Q"
    assert len({rule_id(msgspec.structs.replace(RULE, **{field: getattr(MANY[0], field)})) for field in ("name",)}) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": ResourceType.GROUP},
        {"pattern_type": PatternType.PREFIXED},
        {"name": "order"},
        {"principal": "User:bob"},
        {"host": "10.0.0.7"},
        {"operation": Operation.WRITE},
        {"permission": PermissionType.DENY},
        {"name": 'ü"\0', "host": ""},
    ],
)
def test_another_rule_has_another_id_and_comes_back_as_it_was(fields: dict[str, object]) -> None:
    other = msgspec.structs.replace(RULE, **fields)
    assert rule_id(other) != rule_id(RULE)
    assert decode_rule(rule_id(other), encode_rule(other)) == other


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("AAAAAAAAAAAAAAAAAAAAAA", encode_rule(RULE)),
        (rule_id(RULE), encode_rule(MANY[0])),
        (rule_id(RULE), encode_rule(RULE).replace(b"READ", b"LEND")),
        (rule_id(RULE), b"{}"),
        ("x", encode_rule(RULE)),
    ],
)
def test_a_rule_that_cannot_be_read_is_no_image(key: str, value: bytes) -> None:
    with pytest.raises(UnreadableValueError, match=f"/security/rules/{key}"):
        next_image(KEYS, MetadataImage(), kv(KEYS.access_rule(key), value))


def test_rules_are_part_of_the_image_until_their_key_is_deleted() -> None:
    key = KEYS.access_rule(rule_id(RULE))
    first = next_image(KEYS, MetadataImage(), kv(key, encode_rule(RULE))).after
    assert list(first.rules) == [RULE]
    assert first.rules.find(RULE) == StoredRule(RULE, 7)

    unrelated = next_image(KEYS, first, kv(KEYS.group_config("g"), b"{}")).after
    assert unrelated.rules is first.rules

    second = next_image(KEYS, unrelated, Batch(8, (Change(key, None), Change(KEYS.access_rule("x"), None)))).after
    assert (list(second.rules), len(second.rules)) == ([], 0)
    assert list(first.rules) == [RULE]


def test_a_change_copies_only_the_shards_that_it_touches() -> None:
    before = StoredRules().changed(stored(*MANY))
    after = before.changed({rule_id(MANY[3]): None} | stored(RULE, MANY[4]))

    assert (len(before), len(after)) == (1000, 1000)
    assert sum(old is not new for old, new in zip(before.shards, after.shards, strict=True)) <= 3
    assert after.change_since(before) == ([MANY[3]], [RULE])
    assert before.change_since(after) == ([RULE], [MANY[3]])
    assert set(after) == {*MANY, RULE} - {MANY[3]}


def test_shards_are_of_similar_size() -> None:
    sizes = [len(shard) for shard in StoredRules().changed(stored(*MANY)).shards]
    assert max(sizes) < 20

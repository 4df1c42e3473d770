from __future__ import annotations

import msgspec
import pytest

from odradek.broker.security.access.rule import MOST_CHARACTERS, AccessRule, RuleFilter, check_rule
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.errors import ErrorCode, KafkaError

RULE = AccessRule(
    ResourceType.TOPIC, PatternType.LITERAL, "orders", "User:alice", "*", Operation.READ, PermissionType.ALLOW
)
PREFIX = msgspec.structs.replace(RULE, pattern_type=PatternType.PREFIXED, name="ord")
EVERY = msgspec.structs.replace(RULE, name="*")


def test_a_rule_is_a_sentence() -> None:
    denial = msgspec.structs.replace(PREFIX, permission=PermissionType.DENY, host="10.0.0.7")
    assert str(RULE) == "User:alice may READ TOPIC orders"
    assert str(denial) == "User:alice from 10.0.0.7 must not READ TOPIC prefix ord"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"resource_type": ResourceType.TOPIC},
        {"principal": "User:alice"},
        {"host": "*"},
        {"operation": Operation.READ},
        {"permission": PermissionType.ALLOW},
        {"name": "orders"},
        {"name": "orders", "pattern_type": PatternType.LITERAL},
        {"pattern_type": PatternType.MATCH},
        {"name": "orders", "pattern_type": PatternType.MATCH},
    ],
)
def test_a_filter_finds_a_rule_with_equal_fields(fields: dict[str, object]) -> None:
    assert RuleFilter(**fields).matches(RULE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": ResourceType.GROUP},
        {"principal": "User:bob"},
        {"principal": "User:*"},
        {"host": "10.0.0.7"},
        {"operation": Operation.WRITE},
        {"operation": Operation.ALL},
        {"permission": PermissionType.DENY},
        {"name": "other"},
        {"name": "*"},
        {"name": ""},
        {"pattern_type": PatternType.PREFIXED},
        {"name": "orders-1", "pattern_type": PatternType.MATCH},
        {"resource_type": ResourceType.UNKNOWN},
        {"pattern_type": PatternType.UNKNOWN},
    ],
)
def test_a_filter_passes_over_a_rule_with_another_field(fields: dict[str, object]) -> None:
    assert not RuleFilter(**fields).matches(RULE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern_type", "name", "found"),
    [
        (PatternType.MATCH, "orders", [RULE, PREFIX, EVERY]),
        (PatternType.MATCH, "order", [PREFIX, EVERY]),
        (PatternType.MATCH, "x", [EVERY]),
        (PatternType.MATCH, "*", [EVERY]),
        (PatternType.MATCH, None, [RULE, PREFIX, EVERY]),
        (PatternType.ANY, "orders", [RULE]),
        (PatternType.ANY, "ord", [PREFIX]),
        (PatternType.ANY, "*", [EVERY]),
        (PatternType.LITERAL, "ord", []),
        (PatternType.LITERAL, None, [RULE, EVERY]),
        (PatternType.PREFIXED, "ord", [PREFIX]),
        (PatternType.PREFIXED, "orders", []),
    ],
)
def test_match_finds_the_rules_that_concern_a_name(
    pattern_type: PatternType, name: str | None, found: list[AccessRule]
) -> None:
    wanted = RuleFilter(pattern_type=pattern_type, name=name)
    assert [rule for rule in (RULE, PREFIX, EVERY) if wanted.matches(rule)] == found


def test_a_filter_without_gaps_names_one_rule() -> None:
    exact = RuleFilter(
        RULE.resource_type, RULE.pattern_type, RULE.name, RULE.principal, RULE.host, RULE.operation, RULE.permission
    )
    assert exact.single_rule() == RULE
    for field in RuleFilter.__struct_fields__:
        open_filter = msgspec.structs.replace(exact, **{field: getattr(RuleFilter(), field)})
        assert open_filter.single_rule() is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"resource_type": ResourceType.CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"name": ""}, "Invalid empty resource name"),
        ({"resource_type": ResourceType.UNKNOWN}, "Invalid resourceType UNKNOWN"),
        ({"pattern_type": PatternType.UNKNOWN}, "Invalid patternType UNKNOWN"),
        ({"pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"operation": Operation.UNKNOWN}, "Invalid operation UNKNOWN"),
        ({"permission": PermissionType.UNKNOWN}, "Invalid permissionType UNKNOWN"),
        ({"principal": "alice"}, "no colon is present"),
        ({"name": "n" * (MOST_CHARACTERS + 1)}, "more than 4096"),
        ({"host": "n" * (MOST_CHARACTERS + 1)}, "more than 4096"),
        ({"principal": "User:" + "n" * MOST_CHARACTERS}, "more than 4096"),
    ],
)
def test_a_rule_that_cannot_be_stored_is_refused(fields: dict[str, object], text: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check_rule(msgspec.structs.replace(RULE, **fields))
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert text in raised.value.detail


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"resource_type": ResourceType.USER, "operation": Operation.CREATE_TOKENS},
        {"resource_type": ResourceType.DELEGATION_TOKEN, "operation": Operation.DESCRIBE_TOKENS},
        {"resource_type": ResourceType.TRANSACTIONAL_ID, "operation": Operation.TWO_PHASE_COMMIT},
        {"resource_type": ResourceType.CLUSTER, "name": "kafka-cluster", "pattern_type": PatternType.PREFIXED},
        {"principal": ":x"},
        {"principal": "Group:*"},
        {"host": ""},
        {"name": "n" * MOST_CHARACTERS},
    ],
)
def test_what_kafka_stores_is_stored(fields: dict[str, object]) -> None:
    check_rule(msgspec.structs.replace(RULE, **fields))

"""Which access rule decides. `tests/interop/test_client_acls.py` compares the same with Kafka's authorizer."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.client import AclOperation, AclPatternType, AclPermission, AclResourceType, AclRule
from odradek.client.admin.acl_evaluation import Request, decide

TOPIC = AclResourceType.TOPIC


def rule(operation: str, name: str = "orders", permission: str = "ALLOW", **more: Any) -> AclRule:
    fields = {"principal": "User:alice", "resource_type": TOPIC} | more
    return AclRule(
        resource_name=name, operation=AclOperation[operation], permission=AclPermission[permission], **fields
    )


def request(operation: str, **more: Any) -> Request:
    fields = {"principal": "User:alice", "host": "10.0.0.1", "resource_type": TOPIC, "resource_name": "orders"} | more
    return Request(operation=AclOperation[operation], **fields)


def prefixed(operation: str, name: str, permission: str = "ALLOW", **more: Any) -> AclRule:
    return rule(operation, name, permission, pattern_type=AclPatternType.PREFIXED, **more)


@pytest.mark.parametrize(
    ("of_rule", "asked", "is_allowed"),
    [
        (rule("READ"), request("READ"), True),
        (rule("READ"), request("WRITE"), False),
        (rule("READ"), request("DESCRIBE"), True),
        (rule("WRITE"), request("DESCRIBE"), True),
        (rule("DELETE"), request("DESCRIBE"), True),
        (rule("ALTER"), request("DESCRIBE"), True),
        (rule("CREATE"), request("DESCRIBE"), False),
        (rule("ALTER_CONFIGS"), request("DESCRIBE_CONFIGS"), True),
        (rule("ALTER"), request("DESCRIBE_CONFIGS"), False),
        (rule("DESCRIBE"), request("READ"), False),
        (rule("ALL"), request("ALTER_CONFIGS"), True),
        (rule("READ", "*"), request("READ"), True),
        (rule("READ", "order"), request("READ"), False),
        (prefixed("READ", "ord"), request("READ"), True),
        (prefixed("READ", "orders-"), request("READ"), False),
        (prefixed("READ", "*"), request("READ"), False),  # a prefix, which only * itself begins with
        (rule("READ", principal="User:*"), request("READ"), True),
        (rule("READ", principal="User:bob"), request("READ"), False),
        (rule("READ", principal="User:*"), request("READ", principal="Group:alice"), False),
        (rule("READ", principal="Group:alice"), request("READ", principal="Group:alice"), True),
        (rule("READ", host="10.0.0.1"), request("READ"), True),
        (rule("READ", host="10.0.0.2"), request("READ"), False),
        (rule("READ", resource_type=AclResourceType.GROUP), request("READ"), False),
    ],
)
def test_one_rule(of_rule: AclRule, asked: Request, is_allowed: bool) -> None:
    decision = decide([of_rule], asked)
    assert decision.is_allowed is is_allowed
    assert decision.rule == (of_rule if is_allowed else None)


@pytest.mark.parametrize(
    "denying", [rule("READ", "*", "DENY"), prefixed("ALL", "o", "DENY"), rule("ALL", permission="DENY")]
)
def test_any_rule_that_denies_comes_before_every_rule_that_allows(denying: AclRule) -> None:
    allowing = [rule("READ"), rule("ALL"), prefixed("ALL", "orders")]
    decision = decide([*allowing, denying], request("READ"))
    assert decision == (False, denying, True)


def test_denying_one_operation_leaves_those_that_it_would_be_implied_by() -> None:
    rules = [rule("DESCRIBE", permission="DENY"), rule("READ")]
    assert not decide(rules, request("DESCRIBE")).is_allowed
    assert decide(rules, request("READ")).is_allowed
    assert decide([rule("READ", permission="DENY"), rule("DESCRIBE")], request("DESCRIBE")).is_allowed


def test_without_a_rule_for_the_resource_a_setting_of_the_brokers_decides() -> None:
    others = [rule("READ", "payments"), rule("READ", principal="User:bob")]
    assert decide(others[:1], request("READ")) == (False, None, False)
    assert decide(others[:1], request("READ"), allow_without_rules=True) == (True, None, False)
    assert decide(others, request("READ"), allow_without_rules=True) == (False, None, True)  # somebody has a rule

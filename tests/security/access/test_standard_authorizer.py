from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.access.authorizer import Decision, Reason
from odradek.broker.security.access.rule import AccessRule
from odradek.broker.security.access.standard_authorizer import StandardAuthorizer
from odradek.broker.security.principal import Principal
from odradek.protocol.access_rules import Operation, PatternType, PermissionType, ResourceType, spellings_of_host
from tests.effort import cases, examples
from tests.security.access import model

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
HERE = "10.0.0.7"


def rule(
    operation: Operation,
    permission: PermissionType = ALLOW,
    name: str = "orders",
    *,
    prefixed: bool = False,
    principal: str = "User:alice",
    host: str = "*",
    resource_type: ResourceType = ResourceType.TOPIC,
) -> AccessRule:
    pattern_type = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    return AccessRule(resource_type, pattern_type, name, principal, host, operation, permission)


def decide(
    rules: list[AccessRule], operation: Operation, name: str = "orders", *, principal: Principal = ALICE
) -> Decision:
    return StandardAuthorizer(rules=rules).decide(principal, HERE, operation, ResourceType.TOPIC, name)


def test_without_rules_only_super_users_may() -> None:
    authorizer = StandardAuthorizer([BOB])
    topic = Operation.READ, ResourceType.TOPIC, "t"
    assert authorizer.decide(ALICE, HERE, *topic) == Decision(False, None, Reason.NO_RULE_FOR_RESOURCE)
    assert authorizer.decide(BOB, HERE, *topic) == Decision(True, None, Reason.SUPER_USER)


def test_a_super_user_may_despite_a_denial() -> None:
    authorizer = StandardAuthorizer([ALICE], [rule(Operation.ALL, DENY)])
    assert authorizer.allows(ALICE, HERE, Operation.READ, ResourceType.TOPIC, "orders")


def test_a_resource_without_rules_is_open_if_the_property_says_so() -> None:
    authorizer = StandardAuthorizer(rules=[rule(Operation.READ, principal="User:bob")], allow_everyone=True)
    assert authorizer.allows(ALICE, HERE, Operation.READ, ResourceType.TOPIC, "other")
    assert not authorizer.allows(ALICE, HERE, Operation.READ, ResourceType.TOPIC, "orders")


def test_the_decision_names_its_rule() -> None:
    allowing, denying = rule(Operation.READ, name="ord", prefixed=True), rule(Operation.READ, DENY, "orders")
    assert decide([allowing], Operation.READ) == Decision(True, allowing, Reason.RULE)
    assert decide([allowing, denying], Operation.READ) == Decision(False, denying, Reason.RULE)
    assert decide([allowing], Operation.WRITE) == Decision(False, None, Reason.NO_RULE_ALLOWS)


@pytest.mark.parametrize("denied_at", ["orders", "*", "o", "orders-prefix"])
def test_a_denial_takes_precedence_wherever_it_is(denied_at: str) -> None:
    name = "orders-prefix-1" if denied_at == "orders-prefix" else "orders"
    denying = rule(Operation.READ, DENY, denied_at, prefixed=denied_at in ("o", "orders-prefix"))
    allowing = [
        rule(Operation.ALL, name=name),
        rule(Operation.ALL, name="*"),
        rule(Operation.ALL, name="or", prefixed=True),
    ]
    assert decide([*allowing, denying], Operation.READ, name) == Decision(False, denying, Reason.RULE)
    assert decide(allowing, Operation.READ, name).allowed


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_what_includes_describe_does_so_only_if_it_is_allowed(operation: Operation) -> None:
    assert decide([rule(operation)], Operation.DESCRIBE).allowed
    assert decide([rule(operation, DENY), rule(Operation.DESCRIBE)], Operation.DESCRIBE).allowed


def test_the_principal_may_be_everybody_but_no_other_type() -> None:
    for principal, allowed in {"User:*": True, "User:bob": True, "Group:*": False, "Group:bob": False}.items():
        rules = [rule(Operation.READ, principal=principal)]
        assert decide(rules, Operation.READ, principal=BOB).allowed is allowed


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8:0:0:0:0:0:7", "2001:db8::7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("not an address", "not an address"),
    ],
)
def test_a_host_may_be_written_as_python_or_as_java_prints_it(address: str, host: str) -> None:
    assert host in spellings_of_host(address)
    authorizer = StandardAuthorizer(rules=[rule(Operation.READ, host=host)])
    assert authorizer.allows(ALICE, address, Operation.READ, ResourceType.TOPIC, "orders")
    assert not authorizer.allows(ALICE, "10.0.0.8", Operation.READ, ResourceType.TOPIC, "orders")


def test_a_change_of_rules_changes_the_version() -> None:
    authorizer = StandardAuthorizer()
    before, added = authorizer.version, rule(Operation.READ)
    authorizer.apply((), [added, added])
    assert authorizer.version != before
    assert authorizer.rule_count == 1
    assert authorizer.allows(ALICE, HERE, Operation.READ, ResourceType.TOPIC, "orders")
    authorizer.apply([added, added], ())
    assert authorizer.rule_count == 0
    assert not authorizer.allows(ALICE, HERE, Operation.READ, ResourceType.TOPIC, "orders")


WRITE = Operation.WRITE


@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([rule(WRITE)], True),
        ([rule(Operation.ALL, name="o", prefixed=True)], True),
        ([rule(WRITE, name="*")], True),
        ([rule(WRITE, principal="User:*")], True),
        ([rule(WRITE, principal="User:bob")], False),
        ([rule(WRITE, host="10.0.0.8")], False),
        ([rule(Operation.READ)], False),
        ([rule(WRITE, resource_type=ResourceType.GROUP)], False),
        ([rule(WRITE), rule(WRITE, DENY, "*")], False),
        ([rule(WRITE), rule(WRITE, DENY)], False),
        ([rule(WRITE), rule(WRITE, DENY, "ord", prefixed=True)], False),
        ([rule(WRITE, name="ord", prefixed=True), rule(WRITE, DENY, "ord", prefixed=True)], False),
        ([rule(WRITE, name="ord", prefixed=True), rule(WRITE, DENY, "orders", prefixed=True)], True),
        ([rule(WRITE, name="orders", prefixed=True), rule(WRITE, DENY)], True),
        ([rule(WRITE, name="*"), rule(WRITE, DENY, "o", prefixed=True)], True),
        ([rule(WRITE), rule(WRITE, DENY, principal="User:bob")], True),
    ],
)
def test_a_right_on_any_resource(rules: list[AccessRule], allowed: bool) -> None:
    authorizer = StandardAuthorizer([BOB], rules)
    for _ in range(2):  # the second answer is remembered
        assert authorizer.allows_on_any(ALICE, HERE, WRITE, ResourceType.TOPIC) is allowed
    assert authorizer.allows_on_any(BOB, HERE, WRITE, ResourceType.TOPIC)


def test_the_right_on_any_resource_follows_the_rules() -> None:
    authorizer = StandardAuthorizer()
    assert not authorizer.allows_on_any(ALICE, HERE, WRITE, ResourceType.TOPIC)
    authorizer.apply((), [rule(WRITE)])
    assert authorizer.allows_on_any(ALICE, HERE, WRITE, ResourceType.TOPIC)
    authorizer.apply([rule(WRITE)], ())
    assert not authorizer.allows_on_any(ALICE, HERE, WRITE, ResourceType.TOPIC)


def test_some_resource_has_no_rules_unless_one_is_for_all() -> None:
    for rules, allowed in (([rule(WRITE, DENY)], True), ([rule(WRITE, DENY, "*")], False)):
        authorizer = StandardAuthorizer(rules=rules, allow_everyone=True)
        assert authorizer.allows_on_any(ALICE, HERE, WRITE, ResourceType.TOPIC) is allowed


NAMES = ["*", "a", "ab", "abc", "b", "ba"]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:alice"]
HOSTS = ["*", HERE, "10.0.0.8"]
RULES = st.builds(
    AccessRule,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    st.sampled_from(model.PATTERNS),
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(model.OPERATIONS),
    st.sampled_from(model.PERMISSIONS),
)


@examples(300)
@given(added=st.lists(RULES), removed=st.lists(RULES), allow_everyone=st.booleans())
def test_decisions_are_those_of_the_model(
    added: list[AccessRule], removed: list[AccessRule], allow_everyone: bool
) -> None:
    authorizer = StandardAuthorizer(rules=added, allow_everyone=allow_everyone)
    removed += added[::3]
    authorizer.apply(removed, ())
    rules = set(added) - set(removed)
    assert authorizer.rule_count == len(rules)
    for kind in (ResourceType.TOPIC, ResourceType.GROUP):
        for name in (*NAMES, "abcd", "c"):
            for operation in model.OPERATIONS:
                decision = authorizer.decide(ALICE, HERE, operation, kind, name)
                assert decision.allowed is model.allows(
                    rules, "User:alice", HERE, operation, kind, name, allow_everyone=allow_everyone
                )
                check_reason(decision, rules, operation, kind, name)


def check_reason(
    decision: Decision, rules: set[AccessRule], operation: Operation, kind: ResourceType, name: str
) -> None:
    """The rule that is named exists, and is one that decides so."""
    decisive = decision.rule
    if decisive is not None:
        assert decisive in rules
        assert model.is_for_resource(decisive, kind, name)
        assert model.is_for_client(decisive, "User:alice", HERE)
        assert model.concerns(decisive, operation)
        assert (decisive.permission is ALLOW) is decision.allowed
    assert (decision.reason is Reason.RULE) is (decisive is not None)


@examples(300)
@given(rules=st.lists(RULES))
def test_a_right_on_any_resource_is_one_on_a_certain_resource(rules: list[AccessRule]) -> None:
    """If there is one, then also one with the name of a pattern, or with one character more, or without rules."""
    authorizer = StandardAuthorizer(rules=rules)
    names = [name + end for name in NAMES for end in ("", "\0")] + ["\0"]
    for operation in (Operation.WRITE, Operation.DESCRIBE):
        found = any(authorizer.allows(ALICE, HERE, operation, ResourceType.TOPIC, name) for name in names)
        on_any = authorizer.allows_on_any(ALICE, HERE, operation, ResourceType.TOPIC)
        assert on_any is found


@pytest.mark.slow
def test_many_random_rules_decide_as_the_model() -> None:
    source = random.Random(7)
    names = ["".join(source.choices("abcdefgh-.", k=source.randint(1, 12))) for _ in range(20_000)] + ["*"]
    principals = [f"User:{number}" for number in range(500)] + ["User:*"]
    hosts = ["*", *(f"10.0.0.{number}" for number in range(20))]
    rules = model.random_rules(source, cases(1_000_000), names, principals, hosts)
    authorizer = StandardAuthorizer(rules=rules)
    assert authorizer.rule_count == len(set(rules))
    of_type: dict[ResourceType, list[AccessRule]] = {}
    for each in rules:
        of_type.setdefault(each.resource_type, []).append(each)
    outcomes = set()
    for _ in range(20):
        # A client and a name that a random rule is for, so that not everything is denied.
        near = source.choice(rules)
        principal = Principal("User", near.principal.removeprefix("User:"))
        host = near.host if near.host != "*" else HERE
        name = near.name + source.choice(["", "x"])
        operation = source.choice(model.OPERATIONS)
        decision = authorizer.decide(principal, host, operation, near.resource_type, name)
        assert decision.allowed is model.allows(
            of_type[near.resource_type],
            str(principal),
            host,
            operation,
            near.resource_type,
            name,
            allow_everyone=False,
        )
        outcomes.add(decision.allowed)
    assert outcomes == {True, False}
    removed = rules[: len(rules) // 10]
    authorizer.apply(removed, ())
    assert authorizer.rule_count == len(set(rules) - set(removed))

"""Scripts of an administrator of access rules, and of clients with random rules.

Names of parameters: a rule is `(resource type, pattern type, name, principal, host, operation, permission)`.
"""

from __future__ import annotations

import random

from odradek.protocol.access_rules import CLUSTER_NAME, Operation, PatternType, PermissionType, ResourceType
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from odradek.protocol.messages.describe_acls import DescribeAclsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.interop.differential.playing import Step

ANY, MATCH, LITERAL, PREFIXED, UNKNOWN = 1, 2, 3, 4, 99
READ, WRITE, DENY, ALLOW = Operation.READ, Operation.WRITE, PermissionType.DENY, PermissionType.ALLOW

TOPICS = ["a", "ab", "abc", "b", "missing"]
GROUPS = ["a", "ab", "*"]


def rule(
    name: str = "t",
    principal: str = "User:alice",
    *,
    kind: int = 2,
    pattern: int = LITERAL,
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> AclCreation:
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def creating(*rules: AclCreation, version: int = 3) -> Step:
    return Step(CreateAclsRequest([*rules]), version)


def describing(
    name: str | None = None,
    principal: str | None = None,
    *,
    kind: int = ANY,
    pattern: int = ANY,
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
    version: int = 3,
) -> Step:
    return Step(DescribeAclsRequest(kind, name, pattern, principal, host, operation, permission), version, reads=True)


def deleting(*filters: DeleteAclsFilter, version: int = 3) -> Step:
    return Step(DeleteAclsRequest([*filters]), version)


def matching(
    name: str | None = None,
    principal: str | None = None,
    *,
    kind: int = ANY,
    pattern: int = ANY,
    operation: int = ANY,
    permission: int = ANY,
) -> DeleteAclsFilter:
    return DeleteAclsFilter(kind, name, pattern, principal, None, operation, permission)


EVERY_RULE = describing()
DELETE_EVERY_RULE = DeleteAclsRequest([matching()])

_STORED = [
    rule("t"),
    rule("t", operation=WRITE, permission=DENY),
    rule("t", "User:*", host="10.0.0.7"),
    rule("*", "User:bob"),
    rule("t", pattern=PREFIXED),
    rule("*", pattern=PREFIXED),
    rule("ta", kind=3, operation=Operation.ALL),
    rule(CLUSTER_NAME, kind=4, operation=Operation.IDEMPOTENT_WRITE),
    rule(CLUSTER_NAME, kind=4, pattern=PREFIXED),
    rule("x", kind=5, operation=Operation.TWO_PHASE_COMMIT),
    rule("token", kind=6, operation=Operation.DESCRIBE_TOKENS),
    rule("alice", kind=7, operation=Operation.CREATE_TOKENS),
    rule("t", "Group:admins"),
    rule("t", ":x"),
    rule("t", "User:a:b"),
    rule("t", host=""),
    rule("a b/ü", operation=Operation.CLUSTER_ACTION),
]
_REFUSED = [
    rule(""),
    rule("other", kind=4),
    rule("*", kind=4),
    rule("kafka-", kind=4, pattern=PREFIXED),
    rule(kind=UNKNOWN),
    rule(kind=-1),
    rule(pattern=UNKNOWN),
    rule(operation=UNKNOWN),
    rule(permission=UNKNOWN),
    rule(principal="alice"),
    rule(principal=""),
]

ADMINISTRATION = [
    *(creating(*_STORED, version=version) for version in (1, 2, 3)),
    *(describing(version=version) for version in (1, 2, 3)),
    creating(),
    creating(*_REFUSED, rule("good")),
    *(creating(rule("good"), rule("bad", **wrong)) for wrong in ({"kind": ANY}, {"pattern": ANY}, {"pattern": MATCH})),
    *(creating(rule("good"), rule("bad", **wrong)) for wrong in ({"operation": ANY}, {"permission": ANY})),
    EVERY_RULE,
    *(describing(name, pattern=pattern) for name in ("t", "ta", "tab", "*", "", "x") for pattern in range(1, 5)),
    *(describing(kind=kind) for kind in (*range(1, 8), UNKNOWN)),
    *(describing(pattern=pattern) for pattern in (*range(1, 5), UNKNOWN)),
    *(describing(operation=operation) for operation in (*range(1, 16), UNKNOWN)),
    *(describing(permission=permission) for permission in (1, 2, 3, UNKNOWN)),
    *(describing(principal=principal) for principal in ("User:alice", "User:*", "alice", "", ":x", "User:a:b")),
    *(describing(host=host) for host in ("*", "10.0.0.7", "")),
    describing("t", "User:alice", kind=2, pattern=LITERAL, host="*", operation=READ, permission=ALLOW),
    deleting(),
    deleting(matching("nothing"), matching("t", pattern=LITERAL, permission=DENY), matching(kind=UNKNOWN)),
    EVERY_RULE,
    deleting(matching(operation=UNKNOWN), matching(permission=UNKNOWN), matching(pattern=UNKNOWN)),
    deleting(matching("tab", pattern=MATCH), matching("t"), matching("t", "User:alice")),
    EVERY_RULE,
    *(deleting(matching(kind=kind), version=version) for kind, version in ((4, 1), (5, 2), (6, 3))),
    EVERY_RULE,
    deleting(matching()),
    EVERY_RULE,
]


def random_rules(seed: int) -> list[AclCreation]:
    """Rules that often concern the same resources and clients, a third of them denials."""
    source = random.Random(seed)
    rules = []
    for _ in range(source.randint(1, 30)):
        kind = source.choice([ResourceType.TOPIC] * 4 + [ResourceType.GROUP] * 2 + [ResourceType.CLUSTER])
        names = {ResourceType.TOPIC: [*TOPICS[:4], "*"], ResourceType.GROUP: GROUPS}.get(kind, [CLUSTER_NAME])
        rules.append(
            AclCreation(
                kind,
                source.choice(names),
                source.choice([PatternType.LITERAL, PatternType.PREFIXED]),
                source.choice(["User:alice"] * 3 + ["User:bob", "User:*", "Group:alice"]),
                source.choice(["*"] * 3 + ["127.0.0.1", "10.0.0.7"]),
                source.choice([each for each in Operation if Operation.ANY < each <= Operation.IDEMPOTENT_WRITE]),
                source.choice([PermissionType.ALLOW] * 2 + [PermissionType.DENY]),
            )
        )
    return rules


def _operations(answer: MetadataResponse) -> list[tuple[str | None, int]]:
    return sorted((topic.name, topic.topic_authorized_operations) for topic in answer.topics)


DECISIONS = [
    Step(MetadataRequest([MetadataRequestTopic(name=name) for name in TOPICS], False, True, True), 9, reads=True),
    Step(MetadataRequest(None, False, True, True), 9, reads=True, counts=_operations),
    Step(DescribeGroupsRequest(GROUPS, include_authorized_operations=True), 5, reads=True),
    Step(DescribeClusterRequest(include_cluster_authorized_operations=True), 0, reads=True),
]
"""Requests whose answers have a bit for each decision (KIP-430)."""

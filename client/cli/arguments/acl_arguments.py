"""The flags of `odradek acls`, which are those of kafka-acls.sh, and the rules and filters that they mean.

| flags | rules |
|---|---|
| resources × principals × hosts × operations | one for each combination |
| `--producer --topic T` | WRITE, DESCRIBE and CREATE of the topic; with `--transactional-id`: its WRITE and DESCRIBE |
| `--consumer --topic T --group G` | READ and DESCRIBE of the topic, READ of the group |
| `--idempotent` | IDEMPOTENT_WRITE of the cluster |

As in Kafka, `--operation` is ALL by default, and `remove` removes the very rules that `add` would create. Brokers
compare the host of a rule as text, so `add` writes an IPv6 address as they do, whatever its spelling; `remove` removes
rules that another tool created with the typed or the short spelling, too.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from odradek.client.cli import UsageError
from odradek.client.cli.arguments.argument_types import named

if TYPE_CHECKING:
    from odradek.client.admin.acl_values import (
        AclFilter,
        AclOperation,
        AclPatternType,
        AclPermission,
        AclResourceType,
        AclRule,
    )

OPERATIONS = {
    "topic": ("Read", "Write", "Create", "Describe", "Delete", "Alter", "DescribeConfigs", "AlterConfigs"),
    "group": ("Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs"),
    "cluster": (
        "Create", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite", "Alter", "Describe",
    ),
    "transactional-id": ("Describe", "Write", "TwoPhaseCommit"),
    "delegation-token": ("Describe",),
    "user-principal": ("CreateTokens", "DescribeTokens"),
}  # fmt: skip
"""The operations of each kind of resource, as Kafka spells them; All is one of each."""

_TYPES = {
    "topic": "TOPIC",
    "group": "GROUP",
    "cluster": "CLUSTER",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}


class Resource(NamedTuple):
    """A resource that flags name."""

    kind: str  # as in OPERATIONS
    name: str

    @property
    def type(self) -> AclResourceType:
        from odradek.client.admin.acl_values import AclResourceType

        return AclResourceType[_TYPES[self.kind]]


def add_resource_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("resources")
    for kind, what in (
        ("topic", "topics"),
        ("group", "consumer groups"),
        ("transactional-id", "transactional ids"),
        ("delegation-token", "delegation tokens"),
        ("user-principal", "users with delegation tokens"),
    ):
        group.add_argument(
            f"--{kind}", action="append", default=[], type=named, metavar="NAME", help=f"{what}; * is every one"
        )
    group.add_argument("--cluster", action="store_true", help="the cluster")


def add_pattern_argument(parser: argparse._ActionsContainer, *choices: str) -> None:
    parser.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        choices=choices,
        default="literal",
        help="how the names of resources are meant (default: literal)",
    )


def add_operation_argument(parser: argparse._ActionsContainer, *, several: bool = True) -> None:
    spellings = list(dict.fromkeys(("All", *(one for of_kind in OPERATIONS.values() for one in of_kind))))
    parser.add_argument(
        "--operation",
        action="append" if several else "store",
        type=_Spelling(spellings),
        choices=spellings,
        required=not several,
        metavar="OPERATION",
        help=f"one of {', '.join(spellings)}{' (default: All)' if several else ''}",
    )


def add_rule_arguments(parser: argparse.ArgumentParser) -> None:
    rules = parser.add_argument_group("rules")
    for flag, what in (("allow", "may"), ("deny", "may not, which wins over every rule that allows")):
        rules.add_argument(
            f"--{flag}-principal",
            action="append",
            default=[],
            type=principal,
            metavar="TYPE:NAME",
            help=f"who {what}: User:alice; User:* is everybody",
        )
        rules.add_argument(
            f"--{flag}-host", action="append", default=[], type=named, metavar="IP", help="from where (default: *)"
        )
    add_operation_argument(rules)
    add_pattern_argument(rules, "literal", "prefixed")
    short = parser.add_argument_group("in place of --operation")
    short.add_argument("--producer", action="store_true", help="what a producer of the topics needs")
    short.add_argument("--consumer", action="store_true", help="what a consumer of the topics in the groups needs")
    short.add_argument("--idempotent", action="store_true", help="with --producer: before Kafka 2.8 needed for it")
    parser.add_argument("--force", action="store_true", help="accepted for Kafka's sake: nothing is asked")


def address(text: str) -> str:
    """Parse an IP address."""
    from ipaddress import ip_address

    try:
        ip_address(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IP address, such as 10.0.0.7 or 2001:db8::7") from None
    return text


def principal(text: str) -> str:
    """Parse `User:alice`."""
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form User:name")
    return text


def resources(arguments: argparse.Namespace) -> list[Resource]:
    """The resources that the flags name."""
    from odradek.protocol.access_rules import CLUSTER_NAME

    found = [
        Resource(kind, name)
        for kind in _TYPES
        if kind != "cluster"
        for name in getattr(arguments, kind.replace("-", "_"))
    ]
    return [*found, *([Resource("cluster", CLUSTER_NAME)] if arguments.cluster else [])]


def rules(arguments: argparse.Namespace) -> list[AclRule]:
    """The rules that the flags mean. Raises UsageError."""
    return _rules(arguments, _spelling_of_brokers)


def _rules(arguments: argparse.Namespace, spellings: Callable[[str], Iterable[str]]) -> list[AclRule]:
    from odradek.client.admin.acl_values import AclPatternType, AclRule

    people = [who._replace(host=host) for who in _people(arguments) for host in spellings(who.host)]
    if not people:
        raise UsageError("name a principal: --allow-principal or --deny-principal")
    pattern = AclPatternType[arguments.resource_pattern_type.upper()]
    return [
        AclRule(
            resource_type=resource.type,
            resource_name=resource.name,
            pattern_type=_pattern_of(resource, pattern),
            principal=who.principal,
            host=who.host,
            operation=operation,
            permission=who.permission,
        )
        for resource, operations in _wanted(arguments)
        for who in people
        for operation in operations
    ]


def removal_filters(arguments: argparse.Namespace) -> list[AclFilter]:
    """The filters for the rules to remove: those that the flags mean, or without a principal all of the resources."""
    from odradek.client.admin.acl_values import AclFilter, AclPatternType

    if any(_people(arguments)):
        return [rule.filter for rule in _rules(arguments, _every_spelling)]
    if arguments.operation or arguments.producer or arguments.consumer:
        raise UsageError("name a principal, too: --allow-principal or --deny-principal")
    named_resources = resources(arguments)
    if not named_resources:
        raise UsageError("name a resource, such as --topic NAME")
    pattern = AclPatternType[arguments.resource_pattern_type.upper()]
    return [
        AclFilter(resource_type=one.type, resource_name=one.name, pattern_type=_pattern_of(one, pattern))
        for one in named_resources
    ]


class _Person(NamedTuple):
    principal: str
    host: str
    permission: AclPermission


def _people(arguments: argparse.Namespace) -> Iterator[_Person]:
    from odradek.client.admin.acl_values import AclPermission
    from odradek.protocol.access_rules import EVERY_HOST

    for flag, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY)):
        for name in getattr(arguments, f"{flag}_principal"):
            for host in getattr(arguments, f"{flag}_host") or [EVERY_HOST]:
                yield _Person(name, host, permission)


def _spelling_of_brokers(host: str) -> list[str]:
    from odradek.protocol.access_rules import spellings_of_host

    return [spellings_of_host(host)[-1]]


def _every_spelling(host: str) -> list[str]:
    from odradek.protocol.access_rules import EVERY_HOST, spellings_of_host

    return list(dict.fromkeys((host, *(one for one in spellings_of_host(host) if one != EVERY_HOST))))


def _wanted(arguments: argparse.Namespace) -> Iterator[tuple[Resource, list[AclOperation]]]:
    """The operations on each resource."""
    from odradek.protocol.access_rules import CLUSTER_NAME

    found = resources(arguments)
    if arguments.producer or arguments.consumer:
        _check_short(arguments)
        yield from _of_short(arguments, found)
        if arguments.idempotent:
            yield Resource("cluster", CLUSTER_NAME), operations(["IdempotentWrite"])
        return
    if arguments.idempotent:
        raise UsageError("--idempotent belongs to --producer")
    if not found:
        raise UsageError("name a resource, such as --topic NAME")
    chosen = arguments.operation or ["All"]
    for resource in found:
        for one in chosen:
            if one != "All" and one not in OPERATIONS[resource.kind]:
                possible = ", ".join((*OPERATIONS[resource.kind], "All"))
                raise UsageError(f"there is no {one} of a {resource.kind}; there are {possible}")
        yield resource, operations(chosen)


def _check_short(arguments: argparse.Namespace) -> None:
    if arguments.operation:
        raise UsageError("--producer and --consumer choose the operations: leave --operation out")
    if arguments.deny_principal:
        raise UsageError("--producer and --consumer allow: give --allow-principal")
    if not arguments.topic:
        raise UsageError("name the topics: --topic NAME")
    if arguments.consumer and not arguments.group:
        raise UsageError("name the groups of the consumer: --group NAME")
    if arguments.cluster or arguments.delegation_token or arguments.user_principal:
        raise UsageError("--producer and --consumer need no more than topics, groups and transactional ids")
    if arguments.idempotent and not arguments.producer:
        raise UsageError("--idempotent belongs to --producer")


def _of_short(
    arguments: argparse.Namespace, found: Iterable[Resource]
) -> Iterator[tuple[Resource, list[AclOperation]]]:
    needed = {
        "topic": [
            *(["Write", "Describe", "Create"] if arguments.producer else []),
            *(["Read", "Describe"] if arguments.consumer else []),
        ],
        "group": ["Read"] if arguments.consumer else [],
        "transactional-id": ["Write", "Describe"] if arguments.producer else [],
    }
    for resource in found:
        yield resource, operations(dict.fromkeys(needed[resource.kind]))


def operations(spelt: Iterable[str]) -> list[AclOperation]:
    """The operations that Kafka's tools spell so: `DescribeConfigs`."""
    from odradek.client.admin.acl_values import AclOperation

    return [AclOperation[_upper(one)] for one in spelt]


def _upper(spelt: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in spelt).strip("_").upper()


def _pattern_of(resource: Resource, pattern: AclPatternType) -> AclPatternType:
    """The cluster has one name only."""
    from odradek.client.admin.acl_values import AclPatternType

    return AclPatternType.LITERAL if resource.kind == "cluster" else pattern


class _Spelling:
    """Finds the spelling of a word whatever its case, with or without `_`."""

    def __init__(self, spellings: Iterable[str]) -> None:
        self._by_key = {one.lower(): one for one in spellings}

    def __call__(self, text: str) -> str:
        return self._by_key.get(text.lower().replace("_", "").replace("-", ""), text)

"""`odradek acls list|add|remove|check`: access rules, with the flags of kafka-acls.sh.

`--dry-run` prints what `add` and `remove` would change. `check` prints the rule that decides a request: it fetches the
rules and evaluates them as a broker does (`client.admin.acl_evaluation`). Its exit status is 0 if the request is
allowed.
"""

from __future__ import annotations

import argparse
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from odradek.client.cli import FAILED, UsageError
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.acl_arguments import (
    OPERATIONS,
    add_operation_argument,
    add_pattern_argument,
    add_resource_arguments,
    add_rule_arguments,
    address,
    operations,
    principal,
    removal_filters,
    resources,
    rules,
)
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.output.tables import add_json_argument, print_json, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.acl_evaluation import Decision
    from odradek.client.admin.acl_values import AclFilter, AclOperation, AclRule
    from odradek.client.admin.admin import Admin
    from odradek.client.cli.arguments.acl_arguments import Resource

_ACTIONS = {
    "list": "Print access rules",
    "add": "Create access rules",
    "remove": "Delete access rules",
    "check": "Tell whether a principal may do something, and which rule decides",
}
_NO_HOST = "an address that no rule names"
_COLUMNS = ("resource", "name", "pattern", "principal", "host", "permission", "operation")


def add_arguments(parser: CommandParser) -> None:
    parser.default_action = "list"
    actions = parser.add_actions(_ACTIONS)
    for action in actions.values():
        add_connection_arguments(action)
        add_resource_arguments(action)
        add_json_argument(action)
    add_pattern_argument(actions["list"], "any", "match", "literal", "prefixed")
    actions["list"].add_argument(
        "--principal", action="append", default=[], type=principal, metavar="TYPE:NAME", help="rules of this principal"
    )
    for name in ("add", "remove"):
        add_rule_arguments(actions[name])
        actions[name].add_argument("--dry-run", action="store_true", help="print what would change, change nothing")
    check = actions["check"]
    check.add_argument("--principal", required=True, type=principal, metavar="TYPE:NAME", help="such as User:alice")
    check.add_argument("--host", type=address, metavar="IP", help="its address (default: one that no rule names)")
    add_operation_argument(check, several=False)


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.action == "check":
        named_resources = resources(arguments)
        if len(named_resources) != 1:
            raise UsageError("name one resource, such as --topic NAME")
        kind = named_resources[0].kind
        if arguments.operation not in (*OPERATIONS[kind], "All"):
            raise UsageError(f"there is no {arguments.operation} of a {kind}; there are {', '.join(OPERATIONS[kind])}")
        return with_admin(arguments, _check)
    if arguments.action == "list":
        return with_admin(arguments, _list)
    if arguments.action == "add":
        rules(arguments)  # raises UsageError before a connection is made
        return with_admin(arguments, _add)
    removal_filters(arguments)
    return with_admin(arguments, _remove)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    found = {rule for wanted in _list_filters(arguments) for rule in await admin.describe_acls(wanted)}
    print_rows(_COLUMNS, map(_row, _sorted(found)), as_json=arguments.json)
    return 0


def _list_filters(arguments: argparse.Namespace) -> list[AclFilter]:
    from odradek.client.admin.acl_values import AclFilter, AclPatternType

    pattern = AclPatternType[arguments.resource_pattern_type.upper()]
    principals: list[str | None] = arguments.principal or [None]
    return [
        AclFilter(resource_type=one.type, resource_name=one.name, pattern_type=pattern, principal=who)
        for one in resources(arguments)
        for who in principals
    ] or [AclFilter(principal=who) for who in principals]


async def _add(admin: Admin, arguments: argparse.Namespace) -> int:
    wanted = list(dict.fromkeys(rules(arguments)))
    existing = set(await admin.describe_acls()) if arguments.dry_run else set()
    if arguments.dry_run:
        _print_changes(
            [(rule, "exists already" if rule in existing else "would be created") for rule in wanted], arguments
        )
        return 0
    results = await admin.create_acls(wanted)
    _print_changes([(rule, "created") for rule in results.succeeded], arguments)
    return await status_of(admin, results)


async def _remove(admin: Admin, arguments: argparse.Namespace) -> int:
    filters = removal_filters(arguments)
    if arguments.dry_run:
        found = {rule for wanted in filters for rule in await admin.describe_acls(wanted)}
        _print_changes([(rule, "would be removed") for rule in _sorted(found)], arguments)
        return _print_none(found, arguments)
    results = await admin.delete_acls(filters)
    removed = {rule for of_filter in results.succeeded.values() for rule in of_filter}
    _print_changes([(rule, "removed") for rule in _sorted(removed)], arguments)
    return await status_of(admin, results) or _print_none(removed, arguments)


async def _check(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.acl_values import AclFilter, AclPatternType

    [resource] = resources(arguments)
    [operation] = operations([arguments.operation])
    found = await admin.describe_acls(
        AclFilter(resource_type=resource.type, resource_name=resource.name, pattern_type=AclPatternType.MATCH)
    )
    decision = _decision(found, arguments, operation, resource)
    if arguments.json:
        rule = None if decision.rule is None else _row(decision.rule)
        print_json({"allowed": decision.is_allowed, "rule": rule, "resource_has_rules": decision.has_rules})
    else:
        verdict = "allowed" if decision.is_allowed else "denied"
        if decision.rule is not None:
            reason = f"{decision.rule}"
        elif decision.has_rules:
            reason = f"no rule of {resource.kind} {resource.name} allows it"
        else:
            reason = f"{resource.kind} {resource.name} has no rules (unless allow.everyone.if.no.acl.found is set)"
        print(f"{verdict}: {reason}")
        if not decision.is_allowed:
            print("super.users of the brokers may do everything; rules do not concern them")
    return 0 if decision.is_allowed else FAILED


def _decision(
    found: Iterable[AclRule], arguments: argparse.Namespace, operation: AclOperation, resource: Resource
) -> Decision:
    """Decide the request: a broker compares each spelling of its address; a rule that denies comes first."""
    from odradek.client.admin.acl_evaluation import Request, decide
    from odradek.protocol.access_rules import EVERY_HOST, spellings_of_host

    spellings = [one for one in spellings_of_host(arguments.host or _NO_HOST) if one != EVERY_HOST]
    decisions = [
        decide(found, Request(arguments.principal, host, operation, resource.type, resource.name)) for host in spellings
    ]
    return min(decisions, key=lambda one: (one.rule is None, one.is_allowed))


def _print_none(found: set[AclRule], arguments: argparse.Namespace) -> int:
    if not found and not arguments.json:
        print("no rule matches")
    return 0


def _print_changes(changes: Iterable[tuple[AclRule, str]], arguments: argparse.Namespace) -> None:
    rows = [_row(rule) | {"change": change} for rule, change in changes]
    print_rows((*_COLUMNS, "change"), rows, as_json=arguments.json)


def _row(rule: AclRule) -> dict[str, Any]:
    return {
        "resource": rule.resource_type.words,
        "name": rule.resource_name,
        "pattern": rule.pattern_type.words,
        "principal": rule.principal,
        "host": rule.host,
        "permission": rule.permission.words,
        "operation": rule.operation.words,
    }


def _sorted(found: Iterable[AclRule]) -> list[AclRule]:
    return sorted(found, key=lambda rule: (rule.resource_type, rule.resource_name, rule.principal, str(rule)))

"""`odradek quotas describe|alter`: quotas of users, client ids and addresses, with the flags of kafka-configs.sh.

A user and a client id together are the quota of that user with that client id; `--user-defaults` and its like are those
of all that have no quota of their own.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from odradek.client.cli import UsageError
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import named
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.output.tables import add_json_argument, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.client_quotas import QuotaName

_ACTIONS = {"describe": "Print quotas", "alter": "Change single quotas, and leave the others as they are"}
_KINDS = (("user", "user-defaults"), ("client-id", "client-defaults"), ("ip", "ip-defaults"))
_KEYS = (
    "producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate",
    "connection_creation_rate",
)  # fmt: skip


def add_arguments(parser: CommandParser) -> None:
    parser.default_action = "describe"
    actions = parser.add_actions(_ACTIONS)
    for action in actions.values():
        add_connection_arguments(action)
        group = action.add_argument_group("whose quotas")
        for kind, defaults in _KINDS:
            either = group.add_mutually_exclusive_group()
            what = "address" if kind == "ip" else kind.replace("-", " ")
            either.add_argument(f"--{kind}", type=named, metavar="NAME", help=f"of this {what}")
            either.add_argument(f"--{defaults}", action="store_true", help=f"of every other {what}")
    describe = actions["describe"]
    describe.add_argument("--strict", action="store_true", help="only of those named, not of pairs with them")
    add_json_argument(describe)
    alter = actions["alter"]
    known = ", ".join(_KEYS)
    alter.add_argument(
        "--add-config", type=_rates, default={}, metavar="NAME=NUMBER[,NAME=NUMBER]", help=f"set quotas: {known}"
    )
    alter.add_argument("--delete-config", type=_names, default=[], metavar="NAME[,NAME]", help="remove quotas")
    alter.add_argument("--validate-only", action="store_true", help="only check whether they could be changed")


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.action == "describe":
        return with_admin(arguments, _describe)
    if not arguments.add_config and not arguments.delete_config:
        raise UsageError("name a change: --add-config or --delete-config")
    if not any(getattr(arguments, flag.replace("-", "_")) for flags in _KINDS for flag in flags):
        raise UsageError("name whose quotas: --user, --client-id, --ip, or --user-defaults and its like")
    return with_admin(arguments, _alter)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.client_quotas import QuotaFilter

    quotas = await admin.describe_client_quotas(QuotaFilter(**_names_of(arguments), strict=arguments.strict))
    rows = [
        {"user": _text(entity.user), "client_id": _text(entity.client_id), "ip": _text(entity.ip)}
        | {"quota": key, "value": value}
        for entity, values in sorted(quotas.items(), key=lambda item: str(item[0]))
        for key, value in sorted(values.items())
    ]
    print_rows(("user", "client_id", "ip", "quota", "value"), rows, as_json=arguments.json)
    return 0


async def _alter(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.client_quotas import QuotaEntity

    entity = QuotaEntity(**_names_of(arguments))
    changes: dict[str, float | None] = {**arguments.add_config, **dict.fromkeys(arguments.delete_config)}
    results = await admin.alter_client_quotas({entity: changes}, validate_only=arguments.validate_only)
    if not results.failed:
        print(f"the quotas of {entity} {'could be' if arguments.validate_only else 'are'} altered")
    return await status_of(admin, results)


def _names_of(arguments: argparse.Namespace) -> dict[str, Any]:
    from odradek.client.admin.client_quotas import QuotaName

    names: dict[str, str | QuotaName | None] = {}
    for kind, defaults in _KINDS:
        field = kind.replace("-", "_")
        is_default = getattr(arguments, defaults.replace("-", "_"))
        names[field] = QuotaName.DEFAULT if is_default else getattr(arguments, field)
    return names


def _text(name: str | QuotaName | None) -> str | None:
    return name if name is None or isinstance(name, str) else name.value


def _rates(text: str) -> dict[str, float]:
    rates = {}
    for part in text.split(","):
        name, _, number = part.partition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = math.nan
        if not math.isfinite(rate):
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form name=number")
        rates[name.strip()] = rate
    return rates


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]

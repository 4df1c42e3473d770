"""`odradek users list|add|remove|alter`: the users that authenticate by SCRAM, through a broker.

`add` reads the password from `--password-file`, a terminal, or the first line of standard input: on the command line
every user of the machine would see it. `alter` has the flags of kafka-configs.sh, password included.

Passwords are used as UTF-8, without SASLprep, by Kafka's clients and brokers. The name of a user must be ASCII:
brokers, Kafka's too, refuse the login of any other (`ScramMessages.ClientFirstMessage`), although kafka-configs.sh
makes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from odradek.client.cli import UsageError
from odradek.client.cli.admin_command import status_of, with_admin
from odradek.client.cli.arguments.argument_types import named, not_negative
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.client.cli.output.tables import add_json_argument, print_rows

if TYPE_CHECKING:
    from odradek.client.admin.admin import Admin
    from odradek.client.admin.scram_users import ScramDeletion, ScramUpsertion

_ACTIONS = {
    "list": "Print users and the mechanisms that they have a password for",
    "add": "Set a user's password",
    "remove": "Delete a user's passwords",
    "alter": "Set and delete a user's passwords, with the flags of kafka-configs.sh",
}
_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULT_ITERATIONS = 4096
_ITERATIONS = range(4096, 16384 + 1)
"""The iterations that brokers accept. They would refuse others, but only after this command has computed them."""


def add_arguments(parser: CommandParser) -> None:
    parser.default_action = "list"
    actions = parser.add_actions(_ACTIONS)
    for name, action in actions.items():
        add_connection_arguments(action)
        if name != "alter":
            action.add_argument(  # `odradek.commands` passes a command line with it to the broker's side
                "--config", metavar="FILE", help="the file of a broker that is stopped, in place of a running one"
            )
        action.add_argument(
            "--user",
            "--entity-name",
            type=named,
            required=name != "list",
            action="append" if name == "list" else "store",
            metavar="NAME",
            help="a user of its own" if name != "list" else "only this user; may be repeated",
        )
    add_json_argument(actions["list"])
    for name in ("add", "remove"):
        actions[name].add_argument(
            "--mechanism",
            action="append",
            choices=_MECHANISMS,
            default=[],
            help="a mechanism; may be repeated (default: both)",
        )
    add = actions["add"]
    add.add_argument(
        "--iterations", type=_iterations, default=_DEFAULT_ITERATIONS, help="4096 to 16384 (default: 4096)"
    )
    add.add_argument("--password-file", metavar="FILE", help="a file whose first line is the password")
    alter = actions["alter"]
    alter.add_argument("--entity-type", choices=("users",), help="accepted for Kafka's sake")
    alter.add_argument(
        "--add-config",
        type=_credentials,
        default=[],
        metavar="MECHANISM=[iterations=N,password=P]",
        help="set passwords; everybody on this machine can see them meanwhile",
    )
    alter.add_argument(
        "--delete-config", type=_mechanisms, default=[], metavar="MECHANISM[,MECHANISM]", help="delete passwords"
    )


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.action == "list":
        return with_admin(arguments, _list)
    if arguments.action == "alter" and not arguments.add_config and not arguments.delete_config:
        raise UsageError("name a change: --add-config or --delete-config")
    if not arguments.user.isascii() and (arguments.action == "add" or getattr(arguments, "add_config", None)):
        raise UsageError(
            f"brokers refuse the login of {arguments.user}: a user of SCRAM has a name of ASCII characters"
        )
    if arguments.action == "add":
        arguments.password = _password(arguments)
    return with_admin(arguments, _alter)


async def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    results = await admin.describe_user_scram_credentials(arguments.user)
    rows = [
        {"user": user, "mechanism": one.mechanism, "iterations": one.iterations}
        for user, credentials in sorted(results.succeeded.items())
        for one in credentials
    ]
    print_rows(("user", "mechanism", "iterations"), rows, as_json=arguments.json)
    return await status_of(admin, results)


async def _alter(admin: Admin, arguments: argparse.Namespace) -> int:
    from odradek.client.admin.scram_users import ScramDeletion, ScramUpsertion

    user = arguments.user
    changes: list[ScramUpsertion | ScramDeletion]
    if arguments.action == "add":
        mechanisms = arguments.mechanism or _MECHANISMS
        changes = [ScramUpsertion(user, arguments.password, one, arguments.iterations) for one in mechanisms]
        done = f"the password of {user} is set for {', '.join(mechanisms)}"
    elif arguments.action == "remove":
        mechanisms = arguments.mechanism or await _mechanisms_of(admin, user)
        changes = [ScramDeletion(user, one) for one in mechanisms]
        done = f"{user} has no password any more for {', '.join(mechanisms)}"
    else:
        changes = [ScramUpsertion(user, password, name, times) for name, times, password in arguments.add_config]
        changes += [ScramDeletion(user, name) for name in arguments.delete_config]
        done = f"the passwords of {user} are altered"
    results = await admin.alter_user_scram_credentials(changes)
    if not results.failed:
        print(done)
    return await status_of(admin, results)


async def _mechanisms_of(admin: Admin, user: str) -> list[str]:
    """The mechanisms that a user has. Raises ClientError if there are none."""
    return [one.mechanism for one in (await admin.describe_user_scram_credentials([user])).value(user)]


def _password(arguments: argparse.Namespace) -> str:
    """Read the password. Raises UsageError if there is none."""
    if arguments.password_file is not None:
        from pathlib import Path

        try:
            with Path(arguments.password_file).open("rb") as file:
                password = _without_end(file.readline(), arguments.password_file)
        except OSError as error:
            raise UsageError(f"{arguments.password_file} cannot be read ({error.strerror})") from None
    elif sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"password of {arguments.user}: ")
        if getpass("again: ") != password:
            raise UsageError("the two passwords differ")
    else:
        password = _without_end(sys.stdin.buffer.readline(), "standard input")
    if not password:
        raise UsageError("the password is empty; give it on standard input or by --password-file")
    return password


def _without_end(line: bytes, source: str) -> str:
    """Return the text of a line without its end, LF or CR LF. Raises UsageError."""
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode()
    except UnicodeDecodeError:
        raise UsageError(f"the password in {source} is not UTF-8") from None


def _credentials(text: str) -> list[tuple[str, int, str]]:
    """Parse `SCRAM-SHA-256=[iterations=8192,password=secret],…`. Errors do not repeat the text."""
    import re

    found = []
    pattern = re.compile(r"(SCRAM-SHA-(?:256|512))=\[(?:iterations=([0-9]+),)?password=([^\]]+)\](?:,|$)")
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None:
            raise argparse.ArgumentTypeError("it is not of the form SCRAM-SHA-512=[iterations=4096,password=…]")
        try:
            match[3].encode()
        except UnicodeEncodeError:
            raise argparse.ArgumentTypeError("a password is not UTF-8") from None
        found.append((match[1], _iterations(match[2] or str(_DEFAULT_ITERATIONS)), match[3]))
        position = match.end()
    return found


def _iterations(text: str) -> int:
    number = not_negative(text)
    if number not in _ITERATIONS:
        raise argparse.ArgumentTypeError(f"{text} is not a number from {_ITERATIONS[0]} to {_ITERATIONS[-1]}")
    return number


def _mechanisms(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in _MECHANISMS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(_MECHANISMS)}")
    return names

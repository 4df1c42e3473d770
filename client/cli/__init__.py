"""The commands of a cluster, one module each, with flags named as in Kafka's tools; and how a command line is run.

The module of a command has `add_arguments(parser)` and `run(arguments)`. `run` returns the exit status; an async `run`
runs on an event loop. `odradek.commands` has the table of commands. Only the module of the typed command is imported,
and it imports the client inside `run`, so that `--help` and mistakes are answered at once.

| module | what |
|---|---|
| `produce`, `consume`, `topics`, `groups`, `transactions`, `configs`, `cluster`, `doctor`, `perf` | the commands |
| `acls`, `users`, `quotas` | those of security |
| `admin_command` | the Admin and the exit status of the commands that administer |
| `failures` | errors as they are printed, with the nearest name of a topic |
| `diagnosis_of_failure` | what `doctor` finds after an error, if it says more |
| `offset_reset` | the new offsets of `groups reset-offsets` |
| `reading_range`, `record_filter`, `reading` | for `consume`: where reading begins and ends; `--filter`; the loop |
| `arguments` | flags and their values |
| `input` | lines of input as records |
| `output` | tables, records, progress, colours |

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | it failed; the reason is on standard error |
| 2 | the command line is wrong (argparse, UsageError) |
| 130 | Ctrl-C |
| 141 | the reader of our output is gone (a closed pipe) |
| 143 | SIGTERM, which ends a command as Ctrl-C does |
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Coroutine, Sequence
from importlib import import_module
from typing import Any

from odradek.argument_parser import ArgumentParser
from odradek.client.cli.arguments.command_parser import CommandParser, with_word_first
from odradek.commands import CLIENT, FLAGS_BEFORE_COMMAND, unknown_command

COMMANDS = {name: command.summary for name, command in CLIENT.items()}

FAILED = 1
INTERRUPTED = 130
PIPE_CLOSED = 141

_STATUSES = (
    "exit status: 0 done, 1 failed, 2 the command line is wrong, 130 Ctrl-C, 141 the reader of our output left, "
    "143 SIGTERM"
)


class UsageError(Exception):
    """Flags that exclude each other, or a missing one; reported like the mistakes that argparse finds."""


def run(arguments: Sequence[str], program: str = "python -m client") -> int:
    """Run a command line and return its exit status; argparse exits by itself on `--help` and on mistakes."""
    return exit_status(lambda: _run(_with_signed_values(arguments), program))


def exit_status(work: Callable[[], int]) -> int:
    """Return the status that `work` returns, or the one of its interruption: Ctrl-C, a closed pipe, a full disk."""
    try:
        status = work()
        sys.stdout.flush()  # raises here what the interpreter would print at its exit
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:  # of the flush: the disk is full
        _drop_output()
        return fail(error)


def _drop_output() -> None:
    """Discard the output that cannot be written; the interpreter would flush it at its exit, and exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str], program: str) -> int:
    parser = ArgumentParser(prog=program, description="Work with the brokers of a Kafka cluster.", epilog=_STATUSES)
    parser.add_argument("--version", action=_PrintVersion, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=CommandParser)
    ordered = with_word_first(arguments, FLAGS_BEFORE_COMMAND.__contains__)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary}.", epilog=_STATUSES)
        if [name] == ordered[:1]:
            _module(name).add_arguments(command)
    if ordered and ordered[0].partition("=")[0] in FLAGS_BEFORE_COMMAND:
        parser.error(f"name a command: {', '.join(COMMANDS)}")
    if ordered and not ordered[0].startswith("-") and ordered[0] not in CLIENT:
        parser.error(unknown_command(ordered[0], CLIENT, program))
    parsed = parser.parse_args(ordered)
    try:
        status: int | Coroutine[None, None, int] = _module(parsed.command).run(parsed)
        return status if isinstance(status, int) else _on_loop(status)
    except UsageError as error:
        commands.choices[parsed.command].error(str(error))


class _PrintVersion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from odradek.client.network.connection import SOFTWARE_NAME, SOFTWARE_VERSION

        print(f"{SOFTWARE_NAME} {SOFTWARE_VERSION}")
        parser.exit()


def _with_signed_values(arguments: Sequence[str]) -> list[str]:
    """Join values such as `-1h` to the flag before them, because argparse takes a word with a leading "-" as a flag."""
    joined: list[str] = []
    for argument in arguments:
        if re.match(r"-\d", argument) and joined and re.fullmatch(r"--[a-z-]+", joined[-1]):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _module(command: str) -> Any:
    return import_module(CLIENT[command].module)


def _on_loop(command: Coroutine[None, None, int]) -> int:
    from odradek.client.cli.output.client_log import printed_warnings

    with printed_warnings():
        try:
            import uvloop
        except ImportError:
            import asyncio

            return asyncio.run(command)
        return uvloop.run(command)


def fail(error: BaseException | str) -> int:
    """Print an error and return the exit status of a failure."""
    from odradek.client.cli.output.terminal import RED, paint

    print(f"{paint('error:', RED, sys.stderr)} {error}", file=sys.stderr)
    return FAILED

"""`odradek completion bash|zsh`: the script with which a shell completes commands, flags, choices and names of files.

shtab makes the script of one parser that has every command of `odradek.commands.GROUPS`. That parser is for this only:
nothing parses a command line with it. A command runs with the parser of its own module, so this module and shtab cost
other commands nothing. The script is complete in itself: a shell that completes starts no process of ours.

A new command needs no change here. Arguments whose `metavar` begins with FILE, PATH or DIR complete files or
directories.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module

import shtab

from odradek.argument_parser import ArgumentParser
from odradek.client.cli import exit_status
from odradek.client.cli.arguments.command_parser import CommandParser
from odradek.client.cli.arguments.connection_arguments import add_connection_arguments
from odradek.commands import GROUPS, WITHOUT_ITS_GROUP, Command

_SHELLS = ("bash", "zsh")
_EXAMPLES = """\
for this user, from the next shell on:
  {program} bash > ~/.local/share/bash-completion/completions/odradek
  {program} zsh > DIRECTORY/_odradek        with a DIRECTORY of $fpath
in this shell:
  eval "$({program} bash)"
"""
_BY_METAVAR = {"FILE": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}


def main(arguments: Sequence[str], program: str = "odradek completion") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    parser = ArgumentParser(
        prog=program,
        description="Print the script that completes commands in bash or zsh.",
        epilog=_EXAMPLES.format(program=program),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    shell = parser.parse_args(arguments).shell
    return exit_status(lambda: _print(shtab.complete(parser_of_every_command(), shell)))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=_SHELLS)


def parser_of_every_command() -> argparse.ArgumentParser:
    """Return a parser with every command, and with the flags that may stand before one. Imports all their modules."""
    parser = _CompletedParser(prog="odradek")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    add_connection_arguments(parser)
    top = parser.add_subparsers(metavar="COMMAND")
    groups: dict[str, argparse._SubParsersAction[_CompletedParser]] = {}
    for heading, typed, command in _commands():
        group, _, name = typed.rpartition(" ")
        if group and group not in groups:
            groups[group] = top.add_parser(group, help=heading).add_subparsers(metavar="COMMAND")
        for commands in (groups.get(group, top), *([top] if WITHOUT_ITS_GROUP.get(name) == group else [])):
            _add_arguments(commands.add_parser(name, help=command.summary), name, command.module)
    parser.complete_files()
    return parser


class _CompletedParser(CommandParser):
    def complete_files(self) -> None:
        """Mark the arguments that name files, here and in the parsers of commands."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - its parsers are not public otherwise
                for parser in action.choices.values():
                    parser.complete_files()
            elif isinstance(action.metavar, str):
                for metavar, completion in _BY_METAVAR.items():
                    if action.metavar.startswith(metavar):
                        action.complete = completion  # type: ignore[attr-defined] # shtab's own attribute


def _commands() -> Iterator[tuple[str, str, Command]]:
    for heading, group in GROUPS.items():
        for typed, command in group.items():
            yield heading, typed, command


def _add_arguments(parser: argparse.ArgumentParser, name: str, module: str) -> None:
    has_several = Counter(command.module for _, _, command in _commands())[module] > 1
    add = import_module(module).add_arguments
    if has_several:
        add(parser, name)
    else:
        add(parser)


def _print(text: str) -> int:
    print(text, flush=True)
    return 0

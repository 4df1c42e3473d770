"""The parser of a command, whose action may stand anywhere among its flags: `topics --bootstrap-server B list`.

argparse gives flags to the parser whose word stands before them, so those of an action only hold behind it. Here the
word is brought to the front before argparse looks. What stands behind a flag that takes a value is that value, though
it may read like a word: `topics --topic list` names no action.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class CommandParser(argparse.ArgumentParser):
    """A parser with actions or without. Of one that has them, `default_action` is meant where none is typed."""

    default_action: str | None = None

    def add_actions(self, summaries: Mapping[str, str]) -> dict[str, CommandParser]:
        """The parsers of the actions, by name; `arguments.action` is the one that was typed."""
        actions = self.add_subparsers(dest="action", required=True, metavar="|".join(summaries))
        self._actions_by_name: dict[str, CommandParser] = {
            name: actions.add_parser(name, help=summary, description=f"{summary}.")
            for name, summary in summaries.items()
        }
        return self._actions_by_name

    def takes_value(self, flag: str) -> bool:
        """Whether a flag, whole or as far as it is unmistakable, has its value behind it."""
        return any(
            action.nargs != 0 and any(known.startswith(flag) for known in action.option_strings)
            for action in self._actions
        )

    def parse_known_args(  # type: ignore[override] # typeshed tells the types of namespaces apart, nobody here does
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """As argparse, with the action first. Exits with status 2 where one is needed and missing."""
        if hasattr(self, "_actions_by_name") and args is not None:
            args = self._with_action_first(args)
        return super().parse_known_args(args, namespace)

    def _with_action_first(self, arguments: Sequence[str]) -> list[str]:
        ordered = with_word_first(
            arguments, lambda flag: any(one.takes_value(flag) for one in self._actions_by_name.values())
        )
        if ordered and not ordered[0].startswith("-"):
            return ordered
        if {"-h", "--help"} & {*ordered}:
            return ["--help"]
        if self.default_action is None:
            self.error(f"say what to do: {', '.join(self._actions_by_name)}")
        return [self.default_action, *ordered]


def with_word_first(arguments: Sequence[str], takes_value: Callable[[str], bool]) -> list[str]:
    """`arguments` with the first that is neither a flag nor the value of one before all others."""
    is_value = False
    for index, argument in enumerate(arguments):
        if not argument.startswith("-") and not is_value:
            return [argument, *arguments[:index], *arguments[index + 1 :]]
        is_value = argument.startswith("--") and "=" not in argument and takes_value(argument)
    return list(arguments)

"""A parser that accepts the action of a command anywhere among the flags: `topics --bootstrap-server B list`.

It accepts the action as a flag, too, as in Kafka's tools: `topics --list`, `acls --add`.

argparse accepts the flags of an action only behind the action, so this parser moves the action to the front first. The
word behind a flag that takes a value is that value, even if it looks like an action: `topics --topic list` names no
action.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odradek.argument_parser import ArgumentParser, flags_among, nearest


class CommandParser(ArgumentParser):
    """A parser with or without actions. `default_action` is the action of a command line that names none."""

    default_action: str | None = None

    def add_actions(self, summaries: Mapping[str, str]) -> dict[str, CommandParser]:
        """Add actions and return their parsers by name; `arguments.action` is the typed one."""
        actions = self.add_subparsers(dest="action", required=True, metavar="|".join(summaries))
        self._actions_by_name: dict[str, CommandParser] = {
            name: actions.add_parser(name, help=summary, description=f"{summary}.")
            for name, summary in summaries.items()
        }
        return self._actions_by_name

    def has_flag(self, flag: str) -> bool:
        """Return whether there is a flag, in full."""
        return any(flag in action.option_strings for action in self._actions)

    def takes_value(self, flag: str) -> bool:
        """Return whether a flag, which may be abbreviated, takes a value."""
        return any(
            action.nargs != 0 and any(known.startswith(flag) for known in action.option_strings)
            for action in self._actions
        )

    def _is_flag(self, argument: str) -> bool:
        return any(one.has_flag(argument) for one in self._actions_by_name.values())

    def parse_known_args(  # type: ignore[override] # typeshed has an overload for each type of namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, with the action moved to the front. Exits with status 2 if the action is missing."""
        if hasattr(self, "_actions_by_name") and args is not None:
            args = self._with_action_first(args)
        return super().parse_known_args(args, namespace)

    def _with_action_first(self, arguments: Sequence[str]) -> list[str]:
        for index, argument in enumerate(arguments):
            name = argument.removeprefix("--")
            if name != argument and name in self._actions_by_name and not self._is_flag(argument):
                return [name, *arguments[:index], *arguments[index + 1 :]]
        ordered = with_word_first(
            arguments, lambda flag: any(one.takes_value(flag) for one in self._actions_by_name.values())
        )
        if ordered and ordered[0] in self._actions_by_name:
            return ordered
        if {"-h", "--help"} & {*ordered}:
            return ["--help"]
        self._refuse_unknown_flags(ordered)
        if ordered and not ordered[0].startswith("-"):
            hint = nearest(ordered[0], self._actions_by_name) or f"name one: {', '.join(self._actions_by_name)}"
            self.error(f"there is no action {ordered[0]!r}; {hint}")
        if self.default_action is None:
            self.error(f"name an action: {', '.join(self._actions_by_name)}")
        return [self.default_action, *ordered]

    def _refuse_unknown_flags(self, arguments: Sequence[str]) -> None:
        """Exit with status 2 if there is a flag that no action has."""
        actions = self._actions_by_name.values()
        known = [flag for one in actions for flag in one.flags()] + [f"--{name}" for name in self._actions_by_name]
        for flag in flags_among(arguments):
            if not any(one.knows(flag) for one in actions):
                self.error(self.unknown_flag(flag, known))


def with_word_first(arguments: Sequence[str], takes_value: Callable[[str], bool]) -> list[str]:
    """Return `arguments` with the first one that is neither a flag nor a flag's value moved to the front."""
    is_value = False
    for index, argument in enumerate(arguments):
        if not argument.startswith("-") and not is_value:
            return [argument, *arguments[:index], *arguments[index + 1 :]]
        is_value = argument.startswith("--") and "=" not in argument and takes_value(argument)
    return list(arguments)

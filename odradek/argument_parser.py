"""The parser of every command: a mistake on the command line is one line, with the nearest flag for an unknown one.

argparse prints the usage in front of an error, up to 15 lines; here `--help` alone prints it. argparse reports an
unknown flag after all other mistakes, so that a required flag which was misspelt is missing. This parser reports it
first.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class ArgumentParser(argparse.ArgumentParser):
    """argparse's parser with errors of one line. Parsers of its commands are of the same class."""

    def error(self, message: str) -> NoReturn:
        """Print `message` as one line and exit with status 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def flags(self) -> list[str]:
        """Return the flags in full, without those that no help shows."""
        return [flag for action in self._actions if action.help != argparse.SUPPRESS for flag in action.option_strings]

    def knows(self, flag: str) -> bool:
        """Return whether a flag exists, perhaps abbreviated."""
        known = [each for action in self._actions for each in action.option_strings]
        return flag in known or (self.allow_abbrev and any(each.startswith(flag) for each in known))

    def parse_known_args(  # type: ignore[override] # typeshed has an overload for each type of namespace
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse as argparse does, but exit with status 2 if there are words that no argument takes."""
        words = sys.argv[1:] if args is None else list(args)
        if self._subparsers is not None:  # the parser of the command checks its flags
            return super().parse_known_args(words, namespace)
        for flag in flags_among(words):
            if not self.knows(flag):
                self.error(self.unknown_flag(flag, self.flags()))
        parsed, rest = super().parse_known_args(words, namespace)
        rest = [word for word in rest if word != "--"]
        if rest:
            flag = rest[0].partition("=")[0]
            self.error(
                self.unknown_flag(flag, self.flags()) if flag.startswith("-") else f"there is no place for {rest[0]!r}"
            )
        return parsed, rest

    def unknown_flag(self, flag: str, known: Iterable[str]) -> str:
        """Return the complaint about a flag that is none of `known`, with the nearest one."""
        hint = nearest(flag.replace("_", "-"), known) or f"{self.prog} --help lists the flags"
        return f"there is no flag {flag}; {hint}"


def nearest(typed: str, known: Iterable[str]) -> str | None:
    """Return the question whether the most similar one of `known` was meant, or None if none is similar."""
    from difflib import get_close_matches  # 5 ms, which only a mistake costs

    by_name = {each.lstrip("-"): each for each in known}
    near = get_close_matches(typed.lstrip("-").lower(), by_name, n=1)
    return f"did you mean {by_name[near[0]]}?" if near else None


def flags_among(words: Sequence[str]) -> list[str]:
    """Return the names of the words that argparse takes for flags: they begin with a dash and have no space.

    A value of a flag is never among them, because argparse takes no such word as a value.
    """
    before = words[: words.index("--")] if "--" in words else words
    return [word.partition("=")[0] for word in before if re.match(r"-[^\d.]", word) and " " not in word]

"""What the commands of the broker share: the options of its configuration, errors, and a closed pipe."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

_PIPE_CLOSED: Final = 141
"""A shell's status for a program that SIGPIPE ended."""


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options `--config` and `--override`, which name a broker's configuration."""
    parser.add_argument("--config", metavar="FILE", help="the broker's .properties file")
    add_override(parser, "a property, in place of the file's; may be repeated")


def add_override(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add the option `--override`, a list of names and values."""
    parser.add_argument(
        "--override", metavar="NAME=VALUE", action="append", default=[], type=_assignment, help=help_text
    )


def _assignment(text: str) -> tuple[str, str]:
    """Parse NAME=VALUE. Raises ArgumentTypeError."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name.strip(), value.strip()


def fail(problems: Sequence[str]) -> int:
    """Print a line for each problem, and return the exit status of a failure."""
    for problem in problems:
        sys.stderr.write(f"odradek: {problem}\n")
    return 1


def pipe_closed() -> int:
    """Return the exit status after nobody read the output to its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it again at exit
    return _PIPE_CLOSED

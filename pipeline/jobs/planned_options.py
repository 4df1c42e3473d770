"""Flags and options that have no effect beside others: each such pair is refused, because one would be ignored.

| given | refused, because |
|---|---|
| an `--option` that a flag or the job itself sets | it would be ignored, or override the plan |
| an `--option` twice | one would be ignored |
| `--connector kafka`, `--command-config` with `--log-dir` | no broker is asked |
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from typing import Final

from odradek.pipeline.jobs import OptionError, UsageError

# Names are in lower case.
STARTS: Final = frozenset(
    {"startingoffsets", "startingoffsetsbytimestamp", "startingtimestamp", "startingoffsetsbytimestampstrategy"}
)
ENDS: Final = frozenset({"endingoffsets", "endingoffsetsbytimestamp", "endingtimestamp"})
ISOLATION: Final = frozenset({"isolation.level", "kafka.isolation.level"})

_ADDRESSES: Final = dict.fromkeys(("kafka.bootstrap.servers", "bootstrap.servers"), "--bootstrap-server")
OF_SOURCE: Final = _ADDRESSES | {
    "subscribe": "--topic",
    "subscribepattern": "--topic-pattern",
    "assign": "--topic",
    "path": "--log-dir",
}
OF_SINK: Final = _ADDRESSES | {"topic": "--topic"}
"""The flags of options of a source and of a sink."""


def refuse_planned(
    arguments: argparse.Namespace, flags: Mapping[str, str], planned: Collection[str] = frozenset()
) -> None:
    """Raise OptionError for an `--option` that is given twice, that one of `flags` sets, or that is among `planned`.

    The job itself sets those.
    """
    given: set[str] = set()
    for name, _ in arguments.option:
        lowered = name.lower()
        if lowered in given:
            raise OptionError(f"--option {name} is given twice")
        given.add(lowered)
        if lowered in flags:
            raise OptionError(f"--option {name} is not accepted: use {flags[lowered]}")
        if lowered in planned:
            raise OptionError(f"--option {name} is not accepted: {arguments.command} sets it itself")


def refuse_flags_of_brokers(arguments: argparse.Namespace) -> None:
    """Raise UsageError for a flag of `add_source_arguments` that has no effect on `--log-dir`."""
    if arguments.log_dir is None:
        return
    if arguments.connector != "broker":
        raise UsageError(f"--connector {arguments.connector} requires --bootstrap-server")
    if arguments.command_config is not None:
        raise UsageError("--command-config requires --bootstrap-server")

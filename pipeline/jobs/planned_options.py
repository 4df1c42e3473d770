"""Options that a job sets itself, or by its flags: as an `--option` they would be ignored, or override the plan."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from typing import Final

from odradek.pipeline.jobs import OptionError

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
    """Raise OptionError for an `--option` that one of `flags` sets, or that is among `planned`, which the job sets."""
    for name, _ in arguments.option:
        lowered = name.lower()
        if lowered in flags:
            raise OptionError(f"--option {name} is not accepted: use {flags[lowered]}")
        if lowered in planned:
            raise OptionError(f"--option {name} is not accepted: {arguments.command} sets it itself")

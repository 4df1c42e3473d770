"""`python -m client perf produce|consume|e2e`: how fast a cluster is, from here.

| module | what |
|---|---|
| `produce` | throughput of one producer, and the time from each record to its acknowledgement |
| `consume` | throughput of one consumer |
| `end_to_end` | the time from sending a record to reading it |
| `latencies` | percentiles in bounded memory |
| `report` | a line for each interval, and the result |
| `payloads`, `pace` | what is sent, and at which rate |
| `perf_arguments` | the flags that they share |

Flags and lines are those of Kafka's ProducerPerformance, ConsumerPerformance and EndToEndLatency where they have them.
"""

from __future__ import annotations

import argparse
from collections.abc import Coroutine
from importlib import import_module
from typing import Any

from odradek.client.cli import UsageError
from odradek.client.cli.arguments.command_parser import CommandParser

_MODULES = {"produce": "produce", "consume": "consume", "e2e": "end_to_end"}
_SUMMARIES = {
    "produce": "Send records as fast as possible, or at a rate",
    "consume": "Read records as fast as possible",
    "e2e": "Measure the time from sending a record to reading it",
}


def add_arguments(parser: CommandParser) -> None:
    for name, action in parser.add_actions(_SUMMARIES).items():
        _module(name).add_arguments(action)


def run(arguments: argparse.Namespace) -> Coroutine[None, None, int]:
    if arguments.warmup_records >= arguments.num_records:
        raise UsageError("--warmup-records are some of --num-records: of so many none would be measured")
    started: Coroutine[None, None, int] = _module(arguments.action).run(arguments)
    return started


def _module(action: str) -> Any:
    return import_module(f"odradek.client.cli.perf.{_MODULES[action]}")

"""`odradek perf produce|consume|e2e`: measure the speed of a cluster from this machine.

| module | what |
|---|---|
| `produce` | throughput of one producer, and the time from each record to its acknowledgement |
| `consume` | throughput of one consumer |
| `end_to_end` | the time from sending a record to reading it |
| `latencies` | percentiles in bounded memory |
| `report` | a line for each interval, and the result |
| `payloads`, `pace` | the records that are sent, and their rate |
| `perf_arguments` | the shared flags |

Flags and lines are those of Kafka's ProducerPerformance, ConsumerPerformance and EndToEndLatency where these have them.
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
        raise UsageError("--warmup-records must be less than --num-records, which includes them")
    started: Coroutine[None, None, int] = _module(arguments.action).run(arguments)
    return started


def _module(action: str) -> Any:
    return import_module(f"odradek.client.cli.perf.{_MODULES[action]}")

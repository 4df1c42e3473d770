"""The commands `inspect` and `verify`.

```
python -m broker inspect DIR [--topic NAME] [--all] [--json]        a row for each partition
python -m broker inspect DIR TOPIC-PARTITION [--segment OFFSET] [--json]   segments, batches, index entries
python -m broker inspect DIR/TOPIC-PARTITION[/FILE] [--json]        the same of a partition, of a segment
python -m broker verify DIR [--json]                                every checksum, index and offset
```

| exit status | inspect | verify |
|---|---|---|
| 0 | the directory was read | no problem was found |
| 1 | it, or a part of it, cannot be read, or it is no log directory | the same, or there is a problem |
| 2 | the command line is wrong | the same |
| 141 | the reader of the output is gone (`| head`) | the same |
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

import msgspec

from odradek.argument_parser import ArgumentParser, nearest
from odradek.broker.clock import Clock, SystemClock
from odradek.broker.command_line import fail, pipe_closed
from odradek.broker.inspection.findings import collected
from odradek.broker.inspection.listing import items, print_items
from odradek.broker.inspection.problem import Problem
from odradek.broker.inspection.summary import print_summary, summarize
from odradek.broker.inspection.target import find_target
from odradek.broker.inspection.text import ProgressBar, error_text, size_text
from odradek.broker.inspection.verification import Outcome, Verification
from odradek.broker.storage import open_log_dir
from odradek.broker.storage.batch_scan import CorruptBatchError
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.names import parse_partition_directory
from odradek.protocol.errors import KafkaError, RemoteProtocolError
from odradek.protocol.plural import pluralize

_UNREADABLE = (OSError, MalformedFileError, CorruptBatchError, KafkaError, RemoteProtocolError)
_MAX_PROBLEMS = 10_000  # printed and stored; the rest is only counted: garbage has as many as it has batches


def run(name: str, arguments: Sequence[str], program: str) -> int:
    """Run `inspect` or `verify` as a process does; return its exit status."""
    try:
        status = inspect(arguments, program) if name == "inspect" else verify(arguments, program=program)
        sys.stdout.flush()
    except BrokenPipeError:
        return pipe_closed()
    return status


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    if command == "verify":
        parser.add_argument("directory", metavar="DIR")
        parser.add_argument("--json", action="store_true", help="one object, for programs")
        return
    parser.add_argument("directory", metavar="DIR", help="a log directory, that of a partition, or a segment's file")
    parser.add_argument(
        "partition", metavar="TOPIC-PARTITION", nargs="?", help="list its segments, batches and indexes"
    )
    parser.add_argument("--segment", metavar="OFFSET", type=int, help="only the segment that holds this offset")
    parser.add_argument("--topic", metavar="NAME", help="only the partitions of this topic, also empty ones")
    parser.add_argument("--all", action="store_true", help="empty partitions and internal topics, too")
    parser.add_argument("--json", action="store_true", help="for programs; of a partition, an object on each line")


def inspect(arguments: Sequence[str], program: str = "python -m broker inspect") -> int:
    """Run `inspect`; return its exit status."""
    parser = ArgumentParser(prog=program, description="Look at a log directory.")
    add_arguments(parser, "inspect")
    options = parser.parse_args(arguments)
    if options.partition is not None and parse_partition_directory(options.partition) is None:
        parser.error(f"{options.partition!r} is not TOPIC-PARTITION")
    if options.topic is not None and (options.all or options.partition is not None):
        parser.error("--topic names what is shown: leave out --all and TOPIC-PARTITION")
    try:
        target = find_target(options.directory)
        if target.partition is not None:
            if options.partition is not None or (options.segment is not None and target.segment is not None):
                parser.error(f"{options.directory} is of a partition already: leave out what is behind it")
            options.directory, options.partition = target.directory, target.partition
        if options.partition is not None:
            return _list(options, target.segment)
        summary = summarize(options.directory, options.topic)
        if options.json:
            print(msgspec.json.format(msgspec.json.encode(summary)).decode())
        else:
            print_summary(sys.stdout, summary, is_whole=options.all or options.topic is not None)
        return 1 if summary.unreadable else 0
    except BrokenPipeError:
        raise
    except _UNREADABLE as error:
        return fail([error_text(error)])


def _list(options: argparse.Namespace, base_offset: int | None) -> int:
    """List a partition; only the segment at `base_offset`, or the one that `--segment` names, if there is one."""
    key = parse_partition_directory(options.partition)
    with collected() as findings, open_log_dir(options.directory) as log_dir:
        partition = None if key is None else log_dir.partitions.get(key)
        if partition is None:
            near = nearest(options.partition, (f"{topic}-{number}" for topic, number in log_dir.partitions))
            hint = f"; {near}" if near else ""
            raise FileNotFoundError(f"there is no {options.partition} in {options.directory}{hint}")
        if base_offset is not None and all(each.base_offset != base_offset for each in partition.segments):
            raise FileNotFoundError(f"{options.partition} has no segment {base_offset}")
        segment = options.segment if base_offset is None else base_offset
        print_items(sys.stdout, items(partition, segment), as_json=options.json)
        for line in findings.about(partition.directory):
            print(line, file=sys.stderr)
    return 0


def verify(arguments: Sequence[str], clock: Clock | None = None, program: str = "python -m broker verify") -> int:
    """Run `verify`; return its exit status."""
    parser = ArgumentParser(prog=program, description="Check everything in a log directory.")
    add_arguments(parser, "verify")
    options = parser.parse_args(arguments)
    logging.getLogger("odradek.broker.storage").addHandler(logging.NullHandler())  # this command reports the problems
    clock = clock or SystemClock()
    bar = ProgressBar(sys.stderr, clock)
    problems: list[Problem] = []

    def report(problem: Problem) -> None:
        if len(problems) < _MAX_PROBLEMS:
            problems.append(problem)
            if not options.json:
                bar.clear()
                print(problem)

    started = clock.monotonic()
    try:
        outcome = Verification(options.directory, report, bar.show).run()
    except BrokenPipeError:
        raise
    except OSError as error:
        bar.clear()
        return fail([error_text(error)])
    bar.clear()
    if options.json:
        print(msgspec.json.encode({**msgspec.to_builtins(outcome), "found": problems}).decode())
    else:
        print(_outcome_text(outcome, clock.monotonic() - started))
    return 1 if outcome.problems else 0


def _outcome_text(outcome: Outcome, seconds: float) -> str:
    partitions, segments = pluralize(outcome.partitions, "partition"), pluralize(outcome.segments, "segment")
    problems = pluralize(outcome.problems, "problem") if outcome.problems else "no problems"
    return (
        f"{partitions}, {segments}, {pluralize(outcome.batches, 'batch', 'batches')},"
        f" {size_text(outcome.bytes)} in {seconds:.1f} s ({size_text(outcome.bytes / max(seconds, 1e-9))}/s):"
        f" {problems}"
    )

"""The command line of `odradek workers`.

```
odradek workers --config FILE [--override NAME=VALUE]… [--spread] [--json]
```

Without `--spread` it prints the workers and their partitions, also beside a running broker. With it, the broker is
stopped, and partitions move to their workers under `num.workers` of the configuration.

| exit status | |
|---|---|
| 0 | done |
| 1 | it failed, or is refused, and standard error has the reason |
| 2 | the command line is wrong |
| 141 | the reader of the output is gone (`| head`) |
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from odradek.argument_parser import ArgumentParser
from odradek.broker.clock import Clock, SystemClock
from odradek.broker.command_line import add_config, fail, pipe_closed
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.config.workers import log_directory
from odradek.broker.inspection.text import error_text, print_table
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.opening import shared_store
from odradek.broker.metadata.store.shared.server import FILE_NAME as SOCKET_NAME
from odradek.broker.metadata.store.shared.socket_file import ListeningSocket
from odradek.broker.metadata.store.sqlite import FILE_NAME, SqliteStore, read_file
from odradek.broker.metadata.store.store import MetadataStore, StoreError, StoreFailedError
from odradek.broker.randomness import SystemRandomness
from odradek.broker.startup.worker_directories import refuse_unfinished, worker_directories
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.workers.layout import SpreadRefusedError, moves
from odradek.broker.workers.machine import Machine, locked_machine
from odradek.broker.workers.spread import Outcome, fleet_of, spread
from odradek.broker.workers.stored import Stored, read_stored, stored_from
from odradek.protocol.plural import pluralize

_FAILS_WITH: Final = (SpreadRefusedError, LogDirRefusedError, MalformedFileError, StoreError, OSError)


class WorkerRow(msgspec.Struct):
    """A worker as it is printed."""

    worker: int
    node_id: int
    partitions: int
    log_dirs: list[str]


class Report(msgspec.Struct, omit_defaults=True):
    """The output of `--json`. `to_move`: what `--spread` would move; the last three are of `--spread`."""

    num_workers: int
    workers: list[WorkerRow]
    to_move: int
    is_unfinished: bool
    moved: int | None = None
    finished: int | None = None
    remaining: list[str] | None = None


def main(arguments: Sequence[str], program: str = "odradek workers") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    parser = ArgumentParser(
        prog=program, description="The processes of one machine that serve one configuration, and their partitions."
    )
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        config = BrokerConfig.load(options.config, dict(options.override))
        asyncio.run(_run(options, config, SystemClock()))
        sys.stdout.flush()
    except ConfigError as error:
        return fail(error.problems)
    except BrokenPipeError:
        return pipe_closed()
    except _FAILS_WITH as error:
        return fail([error_text(error)])
    return 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--spread",
        action="store_true",
        help="move partitions to their workers under num.workers; stop the broker first",
    )
    parser.add_argument("--json", action="store_true", help="one object, for programs")


async def _run(options: argparse.Namespace, config: BrokerConfig, clock: Clock) -> None:
    outcome, took_ms = None, 0.0
    if options.spread:
        with locked_machine(config, OsFiles()) as machine:
            async with _own_store(config, machine, clock) as store:
                started = clock.monotonic()
                outcome = await spread(config, machine, store, SystemRandomness())
                took_ms = (clock.monotonic() - started) * 1000
    report = _report(config, await _read(config, clock), outcome)
    if options.json:
        print(msgspec.json.encode(report).decode())
    else:
        _print(report, took_ms)


async def _read(config: BrokerConfig, clock: Clock) -> Stored:
    """Read the metadata, also beside a running broker. Raises `StoreError`."""
    keys = Keys(config.metadata_etcd_namespace)
    if config.metadata_etcd_endpoints:
        async with shared_store(config, clock) as store:
            return await read_stored(store, keys)
    kvs, revision = read_file(Path(config.log_dirs[0]) / FILE_NAME)
    return stored_from(keys, [kv for kv in kvs if kv.key.startswith(keys.prefix + b"/")], revision)


@asynccontextmanager
async def _own_store(config: BrokerConfig, machine: Machine, clock: Clock) -> AsyncIterator[MetadataStore]:
    """Open the store for changes: in etcd, or the file that a supervisor would own. Raises `StoreError`."""
    if config.metadata_etcd_endpoints:
        async with shared_store(config, clock) as shared:
            yield shared
        return
    path = Path(config.log_dirs[0]) / FILE_NAME
    if not path.exists():
        if any(directory.seen.revision for directory in machine.directories.values()):
            raise SpreadRefusedError("the metadata of these log directories are in etcd: set metadata.etcd.endpoints")
        raise SpreadRefusedError(f"{path} does not exist: no broker has run with these log.dirs, start it first")
    with _without_supervisor(path.parent):
        store = await SqliteStore.open(path)
        try:
            yield store
        finally:
            await store.close()


@contextmanager
def _without_supervisor(directory: Path) -> Iterator[None]:
    """Keep a supervisor of workers from the store: only one process serves it. Raises `SpreadRefusedError`."""
    try:
        listening = ListeningSocket(directory / SOCKET_NAME)
    except StoreFailedError as error:
        raise SpreadRefusedError(f"workers are running, stop them first: {error}") from error
    try:
        yield
    finally:
        listening.remove_file()
        listening.socket.close()


def _report(config: BrokerConfig, stored: Stored, outcome: Outcome | None) -> Report:
    files = OsFiles()
    found = {number for path in config.log_dirs for number, _ in worker_directories(str(path), files)}
    fleet = fleet_of(config, {0, *found}, stored)
    counts = fleet.counts(stored.image)
    rows = [
        WorkerRow(each, fleet.node_id(each), counts[each], [log_directory(str(path), each) for path in config.log_dirs])
        for each in fleet.workers
        if each < config.num_workers or each in found or counts[each]
    ]
    to_move = sum(len(each.workers) for each in moves(stored.image, fleet, config.num_workers))
    report = Report(config.num_workers, rows, to_move, refuse_unfinished(config) is not None)
    if outcome is not None:
        report.moved, report.finished, report.remaining = outcome
    return report


def _print(report: Report, took_ms: float) -> None:
    rows = [(each.worker, each.node_id, each.partitions, " ".join(each.log_dirs)) for each in report.workers]
    print_table(sys.stdout, ("worker", "node id", "partitions", "log directories"), rows)
    print()
    if report.finished:
        print(f"Finished what was interrupted: {pluralize(report.finished, 'partition')} moved.")
    if report.moved is not None:
        moved = f"{pluralize(report.moved, 'partition')} moved" if report.moved else "Every partition is at its worker"
        print(f"{moved}, in {took_ms:.0f} ms.")
    elif report.is_unfinished:
        print("A move of partitions was interrupted, and no broker starts: --spread finishes it.")
    else:
        print(f"num.workers = {report.num_workers}: --spread would move {pluralize(report.to_move, 'partition')}.")
    for sentence in report.remaining or ():
        print(f"{sentence}.")

"""`odradek broker`, and `python -m broker` in a checkout: one broker as a process, or several (num.workers).

```
odradek broker [--config FILE] [--override NAME=VALUE]... [--read-only] [--explain [API,…]]
odradek broker --help-config | --version
python -m broker inspect DIR … | verify DIR …         see `odradek.broker.inspection.command`
```

The broker runs until SIGTERM or SIGINT. Then it answers the requests that it has received, closes its logs so that
nothing needs recovery, and exits with 0. If it cannot start or run, it prints a line for each problem on standard error
and exits with 1. It exits with 2 if the command line is wrong.

With num.workers above 1 this process is their supervisor (`odradek.broker.workers`), and runs the same command line
for each worker with `--worker`, which is not for users.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.argument_parser import ArgumentParser
from odradek.broker import build_info
from odradek.broker.command_line import add_override, fail
from odradek.broker.config import BrokerConfig, ConfigError, workers
from odradek.broker.descriptor_budget import raise_limit
from odradek.broker.garbage_collection import GarbageCollection
from odradek.broker.inspection.text import error_text
from odradek.broker.metadata.registration import RegistrationError
from odradek.broker.metadata.store.store import StoreError
from odradek.broker.request.audit import LOGGER as AUDIT_LOGGER
from odradek.broker.startup.embedded_config import READ_ONLY
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.structured_logging import StructuredLogger, configure, write_to_file
from odradek.protocol.errors import KafkaError

if TYPE_CHECKING:
    from odradek.broker.broker import Broker
    from odradek.broker.workers.link import Place, WorkerEnd

_LOG = StructuredLogger("odradek.broker")
_STARTING_FAILS_WITH = (LogDirRefusedError, MalformedFileError, StoreError, KafkaError, OSError)


def main(arguments: Sequence[str], program: str = "python -m broker") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    if arguments and arguments[0] in ("inspect", "verify"):
        from odradek.broker.inspection import command

        return command.run(arguments[0], arguments[1:], f"{program} {arguments[0]}")
    options = _parser(program).parse_args(arguments)
    if options.help_config:
        from odradek.broker.config.docs import help_text

        print(help_text())
        return 0
    if options.version:
        print(f"odradek {_version()}")
        return 0
    place: Place | None = options.worker
    link = None if place is None else _worker_end(place)
    try:
        of_all, config = _load(options)
    except ConfigError as error:
        return fail(error.problems)
    configure(
        config.log_level,
        "json" if config.log_format == "json" else "human",
        fields={} if place is None else {"worker": place.number},
    )
    if of_all.num_workers > 1 and place is None:
        return _supervise(of_all, arguments)
    if config.audit_log_file:
        try:
            write_to_file(AUDIT_LOGGER, config.audit_log_file)
        except OSError as error:
            return fail([f"audit.log.file: cannot open {config.audit_log_file}: {error.strerror}"])
    for warning in config.warnings:
        _LOG.warning("property without effect", property=warning)
    _LOG.info("starting", **_first_line(options.config, config))
    before, limit = raise_limit()
    if limit > before:
        _LOG.info("limit of descriptors raised", before=before, limit=limit)
    from odradek.broker.broker import Broker

    if link is None:
        return run(Broker(config, read_only=options.read_only), options.explain)
    from odradek.broker.workers.link import Report
    from odradek.broker.workers.owned_store import worker_of

    broker = Broker(config, worker=worker_of(of_all))
    return run(broker, options.explain, partial(link.report, Report.STARTED), partial(link.report, Report.REFUSED))


def _load(options: argparse.Namespace) -> tuple[BrokerConfig, BrokerConfig]:
    """Load the configuration of all workers, and that of this one: both are one without workers. Raises `ConfigError`.

    Those of all others are checked, for a mistake would end a worker again and again.
    """
    overrides = dict(options.override) | (READ_ONLY if options.read_only else {})
    of_all = BrokerConfig.load(options.config, overrides)
    if found := workers.problems(of_all, read_only=options.read_only):
        raise ConfigError(found)
    if of_all.num_workers == 1:
        return of_all, of_all
    each = [
        BrokerConfig.load(options.config, overrides | workers.worker_properties(of_all, number))
        for number in range(of_all.num_workers)
    ]
    return of_all, each[0 if options.worker is None else options.worker.number]


def _supervise(config: BrokerConfig, arguments: Sequence[str]) -> int:
    """Run a supervisor, and in the processes that it forks their workers; return the exit status."""
    from odradek.broker.workers import supervisor
    from odradek.broker.workers.first_processes import fork_workers
    from odradek.broker.workers.link import Place

    try:
        supervisor.check(config)
        forked = fork_workers(config.num_workers)
        if isinstance(forked, Place):
            return main([*arguments, "--worker", str(forked)])
        return asyncio.run(supervisor.supervise(config, arguments, forked))
    except _STARTING_FAILS_WITH as error:
        return fail([error_text(error)])


def run(
    broker: Broker,
    explained: frozenset[str] | None = None,
    on_start: Callable[[], None] = lambda: None,
    on_refusal: Callable[[], None] = lambda: None,
) -> int:
    """Run a broker until a signal stops it or it fails; return the exit status, and print why it could not start.

    The requests of the `explained` APIs are printed: of all APIs if the set is empty, of none if it is None.
    `on_start` is called when it accepts connections, `on_refusal` if it may not use its node id or log directories.
    """
    try:
        with _explained(broker, explained) as explain:
            return _run_loop(_serve(broker, on_start, explain))
    except _STARTING_FAILS_WITH as error:
        if isinstance(error, LogDirRefusedError | RegistrationError):
            on_refusal()
        return fail([error_text(error)])


@contextmanager
def _explained(broker: Broker, apis: frozenset[str] | None) -> Iterator[Callable[[], None]]:
    """Yield a function that begins to print what the broker does. It must be called when the broker runs."""
    if apis is None:
        yield lambda: None
        return
    from odradek.broker.explain.option import explanation

    with explanation(broker, apis, sys.stdout) as explain:
        yield explain


async def _serve(broker: Broker, *on_start: Callable[[], None]) -> int:
    """See `run`. Raises what `Broker.start` raises."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    gc.disable()  # a start allocates much that stays, and little garbage
    starting = loop.create_task(broker.start())
    stopping = loop.create_task(stop.wait())
    failing = loop.create_task(broker.failed.wait())
    await asyncio.wait({starting, stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
    else:
        starting.result()
        _LOG.info("started")
        for notify in on_start:
            notify()
        collection = GarbageCollection()
        collection.start()
        await asyncio.wait({stopping, failing}, return_when=asyncio.FIRST_COMPLETED)
        _LOG.info("stopping", reason="a signal" if stop.is_set() else "a failure")
        await broker.close()
        collection.stop()
        _LOG.info("stopped")
    for task in (stopping, failing):
        task.cancel()
    return int(broker.failed.is_set())


def _version() -> str:
    return f"{build_info.version()} ({'compiled' if build_info.is_compiled() else 'plain Python'})"


def _first_line(path: str | None, config: BrokerConfig) -> dict[str, str | int]:
    """Return the fields of the first line: version, configuration, log directories and listeners."""
    return {
        "version": _version(),
        "config": path or "defaults",
        "node.id": config.node_id,
        "log.dirs": ",".join(str(Path(each).absolute()) for each in config.log_dirs),
        "listeners": ",".join(map(str, config.listeners)),
    }


def _run_loop(process: Coroutine[Any, Any, int]) -> int:
    """Run on a loop of uvloop, or of asyncio where uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(process)
    return uvloop.run(process)


def _parser(program: str) -> argparse.ArgumentParser:
    parser = ArgumentParser(
        prog=program,
        description="A message broker that speaks Kafka's protocol. It runs until SIGTERM or Ctrl-C.",
        epilog="`inspect DIR` and `verify DIR` in place of options read a log directory without a broker.",
    )
    add_arguments(parser)
    parser.add_argument("--worker", type=_place, help=argparse.SUPPRESS)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="a .properties file with Kafka's names")
    add_override(parser, "a property, in place of the file's; may be repeated")
    parser.add_argument("--read-only", action="store_true", help="serve a log directory without changing it")
    add_explain(parser)
    parser.add_argument("--help-config", action="store_true", help="print every property with its meaning")
    parser.add_argument(
        "--version", action="store_true", help="print the version, and whether its modules are compiled"
    )


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the option `--explain`, for `run`."""
    parser.add_argument(
        "--explain",
        metavar="API,…",
        nargs="?",
        const=frozenset(),
        type=_explained_apis,
        help="print requests, answers, transitions and file operations as they happen, of all APIs or of these",
    )


def _explained_apis(text: str) -> frozenset[str]:
    from odradek.broker.explain.apis import api_names

    try:
        return api_names(text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _worker_end(place: Place) -> WorkerEnd:
    """Wait until the supervisor lets this worker begin."""
    from odradek.broker.workers.link import WorkerEnd

    return WorkerEnd(place)


def _place(text: str) -> Place:
    from odradek.broker.workers.link import Place

    return Place.parse(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], f"python -m {__spec__.parent}" if __spec__ else "python -m broker"))

"""The command line of `odradek metadata`.

```
odradek metadata show           --config FILE [--override NAME=VALUE]…
odradek metadata dump [PREFIX]  --config FILE …
odradek metadata create-cluster --config FILE … [--adopt-topics] [--yes]
odradek metadata accept-backup  --config FILE … [--yes]
```

The configuration is the broker's own; of it, `metadata.etcd.*`, `log.dirs` and `node.id` are used.

| exit status | |
|---|---|
| 0 | done; without `--yes`: said what would be done |
| 1 | it failed, or is refused, and standard error has the reason; `show`: a broker with this configuration is refused |
| 2 | the command line is wrong |
| 141 | the reader of the output is gone (`| head`) |
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from odradek.argument_parser import ArgumentParser
from odradek.broker.clock import Clock, SystemClock
from odradek.broker.command_line import add_config, fail, pipe_closed
from odradek.broker.config import BrokerConfig, ConfigError
from odradek.broker.inspection.text import error_text
from odradek.broker.metadata.store.opening import shared_store
from odradek.broker.metadata.store.store import StoreError
from odradek.broker.metadata_commands.accept_backup import accept_backup
from odradek.broker.metadata_commands.create_cluster import create_cluster
from odradek.broker.metadata_commands.dump import lines
from odradek.broker.metadata_commands.opened_store import read_metadata
from odradek.broker.metadata_commands.show import show
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.protocol.errors import KafkaError

_FAILS_WITH: Final = (StoreError, LogDirRefusedError, MalformedFileError, KafkaError, OSError)

_HELP: Final = {
    "show": "print cluster, brokers and topics, and whether a broker with this configuration may join",
    "dump": "print every key with its value, a JSON object on each line",
    "create-cluster": "put the record of the log directories' cluster into a store that has lost it",
    "accept-backup": "accept a store that is older than the log directories, because etcd was restored",
}


def main(arguments: Sequence[str], program: str = "odradek metadata") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    options = _parser(program).parse_args(arguments)
    try:
        config = BrokerConfig.load(options.config, dict(options.override))
    except ConfigError as error:
        return fail(error.problems)
    try:
        status = asyncio.run(_run(options, config, SystemClock()))
        sys.stdout.flush()
    except BrokenPipeError:
        return pipe_closed()
    except _FAILS_WITH as error:
        return fail([error_text(error)])
    return status


async def _run(options: argparse.Namespace, config: BrokerConfig, clock: Clock) -> int:
    if options.action == "show":
        return int(not show(config, await read_metadata(config, clock), clock, sys.stdout))
    if options.action == "dump":
        for line in lines(await read_metadata(config, clock), options.prefix):
            print(line)
        return 0
    async with shared_store(config, clock) as store:
        if options.action == "create-cluster":
            is_done = await create_cluster(
                config, store, clock, print, adopts_topics=options.adopt_topics, is_confirmed=options.yes
            )
        else:
            is_done = await accept_backup(config, store, clock, print, is_confirmed=options.yes)
    if is_done is not None:
        print("Done: the broker may start." if is_done else "Nothing was changed. --yes does it.")
    return 0


def _parser(program: str) -> argparse.ArgumentParser:
    parser = ArgumentParser(prog=program, description="See and repair the metadata of a cluster.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in _HELP.items():
        add_arguments(actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}."), name)
    return parser


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    add_config(parser)
    if command == "dump":
        parser.add_argument(
            "prefix", metavar="PREFIX", nargs="?", default="", help="only keys that start so: topics/names/"
        )
    elif command != "show":
        parser.add_argument("--yes", action="store_true", help="do it; without, only say what would be done")
    if command == "create-cluster":
        parser.add_argument(
            "--adopt-topics",
            action="store_true",
            help="the broker makes topics of the logs in its directories when it starts",
        )

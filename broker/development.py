"""`odradek dev`: a broker for development on this machine, with its data in memory.

```
odradek dev [--port N] [--dir DIR] [--override NAME=VALUE]... [--verbose] [--explain [API,…]]
```

It prints its address when it accepts connections, and runs until SIGTERM or Ctrl-C. Without `--dir` its log directory
is a temporary one, in memory if there is room, which is removed at the end and never synced. Topics are created at
their first use, and a group assigns its partitions at once (`group.initial.rebalance.delay.ms=0`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from odradek.argument_parser import ArgumentParser
from odradek.broker.__main__ import add_explain, run
from odradek.broker.broker import Broker
from odradek.broker.command_line import add_override, fail
from odradek.broker.config import ConfigError
from odradek.broker.structured_logging import configure

_PORT = 9092
_LAST_PORT = 65535


def main(arguments: Sequence[str], program: str) -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    options = _parser(program).parse_args(arguments)
    configure("INFO" if options.verbose else "WARNING", "human")
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{options.port}",
        "auto.create.topics.enable": "true",
        **({"log.dirs": options.dir} if options.dir else {}),
        **dict(options.override),
    }
    try:
        broker = Broker(properties)
    except ConfigError as error:
        return fail(error.problems)
    return run(broker, options.explain, lambda: _print_addresses(broker, options.dir))


def _print_addresses(broker: Broker, directory: str | None) -> None:
    print(f"bootstrap.servers={broker.bootstrap}")
    print(
        f"The data are {f'in {directory}' if directory else 'temporary, and removed at the end'}. Ctrl-C ends it.",
        flush=True,
    )


def _parser(program: str) -> argparse.ArgumentParser:
    parser = ArgumentParser(prog=program, description="Run a broker for development. It runs until SIGTERM or Ctrl-C.")
    add_arguments(parser)
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=_port,
        default=_PORT,
        metavar="N",
        help="on 127.0.0.1; 0 chooses a free one (default: %(default)s)",
    )
    parser.add_argument("--dir", metavar="DIR", help="keep the data here (default: in memory, removed at the end)")
    add_override(parser, "a property of the broker; may be repeated")
    add_explain(parser)
    parser.add_argument("--verbose", action="store_true", help="print the broker's log, not only its warnings")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: write 0 to {_LAST_PORT}")
    return int(text)

"""The command line of `odradek snapshot`.

```
odradek snapshot save DIR --log-dir LOGDIR      copy a log directory that no broker uses to DIR
odradek snapshot load DIR --log-dir LOGDIR      make the log directory what it was when DIR was saved
```

| exit status | |
|---|---|
| 0 | done |
| 1 | it failed, or is refused, and standard error has the reason |
| 2 | the command line is wrong |
| 141 | the reader of the output is gone (`| head`) |
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from odradek.argument_parser import ArgumentParser
from odradek.broker.command_line import fail, pipe_closed
from odradek.broker.inspection.text import error_text, size_text
from odradek.broker.storage.log_dir import LogDirRefusedError
from odradek.broker.testing.snapshots.offline import load, save
from odradek.protocol.plural import pluralize

_HELP: Final = {
    "save": "copy a log directory that no broker uses to DIR, which does not exist or is empty",
    "load": "make a log directory that no broker uses what it was when DIR was saved; what it holds is removed",
}


def main(arguments: Sequence[str], program: str = "odradek snapshot") -> int:
    """Run a command line as a process and return its exit status; `program` is what was typed to start it."""
    options = _parser(program).parse_args(arguments)
    directory, log_dir = Path(options.directory), Path(options.log_dir)
    try:
        copied = save(log_dir, directory) if options.action == "save" else load(directory, log_dir)
        place = directory if options.action == "save" else log_dir
        print(f"{pluralize(copied.partitions, 'partition')}, {size_text(copied.bytes)} copied to {place}", flush=True)
    except BrokenPipeError:
        return pipe_closed()
    except (LogDirRefusedError, OSError) as error:
        return fail([error_text(error)])
    return 0


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the arguments of `save` or `load`, to run it and to complete it."""
    parser.description = f"{_HELP[command][0].upper()}{_HELP[command][1:]}."
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--log-dir", metavar="DIR", required=True, help="the broker's log.dirs")


def _parser(program: str) -> argparse.ArgumentParser:
    parser = ArgumentParser(prog=program, description="Save and load the state of a stopped broker.")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in _HELP.items():
        add_arguments(actions.add_parser(name, help=text), name)
    return parser

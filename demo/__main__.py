"""`python -m demo`: the walk-through, with its own broker in a new directory under demo/data/, which it keeps.

It does not use data/, which `make run` serves.
"""

from __future__ import annotations

import argparse
import itertools
import socket
import subprocess
import sys
from pathlib import Path

from demo.walk_through import StepError, WalkThrough, shown_interpreter

_START_SECONDS = 30
_FEWEST_LINES = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo", description="A walk through a Kafka log, for newcomers.")
    parser.add_argument("--lines", type=int, default=1_000_000, help="records (default: %(default)s)")
    arguments = parser.parse_args()
    if arguments.lines < _FEWEST_LINES:
        parser.error(f"--lines: {arguments.lines} are too few to see segments: use {_FEWEST_LINES} or more")
    directory = _new_directory(Path("demo/data"))
    log_dir = directory / "log"
    port = _free_port()
    command = [
        *(str(shown_interpreter()), "-m", "odradek", "broker"),
        *("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}"),
        *("--override", f"log.dirs={log_dir}"),
    ]
    print(f"The demo starts its own broker, with its log in {log_dir}:\n\n   $ {' '.join(command)}", flush=True)
    with (directory / "broker.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as broker:
        try:
            _wait_until_it_listens(broker, port)
            WalkThrough(f"127.0.0.1:{port}", log_dir, directory, arguments.lines).run()
        except StepError as error:
            print(f"\n{error}; the broker's log is in {directory / 'broker.log'}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            broker.terminate()
    print(f"\nThe broker has stopped. All files are in {directory}; `rm -r {directory}` removes them.")
    return 0


def _new_directory(parent: Path) -> Path:
    """Make the first of walk1, walk2, … that does not exist."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        directory = parent / f"walk{number}"
        try:
            directory.mkdir()
        except FileExistsError:
            continue
        return directory
    raise AssertionError("there is always another number")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_it_listens(broker: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(_START_SECONDS * 20):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            try:
                broker.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        else:
            return
    raise StepError("the broker did not start")


if __name__ == "__main__":
    sys.exit(main())

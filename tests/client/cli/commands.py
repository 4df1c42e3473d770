"""`python -m client` for tests that type commands.

`run` calls the command line in a thread of this process, with an event loop of its own: starting an interpreter costs
more than most commands. `run_process` and `start` start one, for what is about processes, or reads standard input.
"""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, TypeVar

from odradek.client import cli

T = TypeVar("T")


async def start(
    *arguments: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "odradek.client", *arguments, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
    )


async def run_process(*arguments: str, stdin: bytes = b"", status: int = 0) -> tuple[list[bytes], str]:
    """Run a command as a process; return the lines of its output, and its standard error."""
    process = await start(*arguments, stdin=subprocess.PIPE)
    out, err = await process.communicate(stdin)
    assert process.returncode == status, err.decode()
    assert "Traceback" not in err.decode()
    return out.splitlines(), err.decode()


async def run(*arguments: str, stdin: bytes = b"", status: int = 0) -> tuple[list[bytes], str]:
    """Run a command in this process, or as a process if it has input; return as `run_process`."""
    if stdin:
        return await run_process(*arguments, stdin=stdin, status=status)
    out, err = io.BytesIO(), io.StringIO()
    with redirect_stdout(io.TextIOWrapper(out)) as printed, redirect_stderr(err):
        ended_with = await asyncio.to_thread(_run_here, arguments)
        printed.flush()
    assert ended_with == status, err.getvalue()
    return out.getvalue().splitlines(), err.getvalue()


async def run_json(*arguments: str, status: int = 0) -> Any:
    """Run a command with `--json`; return the document that it printed."""
    out, _ = await run(*arguments, "--json", status=status)
    return json.loads(b"\n".join(out))


async def becomes(ask: Callable[[], Awaitable[T]], wanted: T) -> None:
    """Call `ask` until it returns `wanted`: brokers of Apache Kafka apply a change some time after its answer."""
    answer = await ask()
    for _ in range(200):
        if answer == wanted:
            break
        answer = await ask()
    assert answer == wanted


def _run_here(arguments: tuple[str, ...]) -> int:
    try:
        return cli.run(arguments)
    except SystemExit as error:  # of argparse
        return error.code if isinstance(error.code, int) else -1

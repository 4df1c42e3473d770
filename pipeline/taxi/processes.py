"""Processes that the example starts beside itself: how they find the project, and that none is left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import odradek
from odradek.client import Admin, ClientError
from odradek.pipeline.jobs import JobError

_ROOT = Path(odradek.__file__).resolve().parents[1]
_STARTED_WITHIN_S = 60
_ENDED_WITHIN_S = 30


@contextmanager
def running(command: Sequence[str], output: Path, environment: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose output goes to a new file, in whose directory it runs; it has ended when the `with` ends.

    It is asked to end, as by SIGTERM, and killed if it has not after half a minute.
    """
    with output.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - a command of our own
            command, cwd=output.parent, env=environment, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def environment() -> dict[str, str]:
    """That of this process, in which another interpreter finds the project."""
    paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def own_broker(directory: Path) -> Iterator[str]:
    """Yield its bootstrap server when it serves; it is stopped when the `with` ends. `directory` is an absolute path.

    Raises `JobError` if it cannot.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{free.getsockname()[1]}"
    properties = {"listeners": f"PLAINTEXT://{server}", "log.dirs": str(directory / "log"), "metrics.port": "-1"}
    command = [sys.executable, "-m", "odradek.broker"]
    command += [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
    output = directory / "broker.log"
    with running(command, output, environment()) as broker:
        asyncio.run(_serves(broker, server, output))
        yield server


async def _serves(broker: subprocess.Popen[bytes], server: str, output: Path) -> None:
    """Return when it answers."""
    deadline = asyncio.get_running_loop().time() + _STARTED_WITHIN_S
    while True:
        try:
            async with Admin(server) as admin:
                await admin.describe_cluster()
                return
        except ClientError as error:
            if broker.poll() is not None:
                raise JobError(f"the broker ended; {output} says why") from error
            if asyncio.get_running_loop().time() > deadline:
                raise JobError(f"the broker does not answer: {error}") from error
            await asyncio.sleep(0.1)

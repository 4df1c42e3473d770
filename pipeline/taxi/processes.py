"""Processes of the example: a broker, and how processes are stopped and find the project."""

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
    """Run a server in the directory of `output`, a new file for its output, while the `with` lasts.

    It is stopped by SIGTERM, and killed after half a minute.
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
    """Return the environment of this process, with an import path that contains the project."""
    paths = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(_ROOT)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def own_broker(directory: Path) -> Iterator[str]:
    """Run a broker on a free port of loopback, with its log in `directory` (absolute); yield its bootstrap server.

    Raises `JobError` if it does not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{free.getsockname()[1]}"
    properties = {"listeners": f"PLAINTEXT://{server}", "log.dirs": str(directory / "log"), "metrics.port": "-1"}
    command = [sys.executable, "-m", "odradek.broker"]
    command += [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
    output = directory / "broker.log"
    with running(command, output, environment()) as broker:
        asyncio.run(_wait_until_ready(broker, server, output))
        yield server


async def _wait_until_ready(broker: subprocess.Popen[bytes], server: str, output: Path) -> None:
    """Wait until the broker responds. Raises `JobError` if it ends or does not respond in time."""
    deadline = asyncio.get_running_loop().time() + _STARTED_WITHIN_S
    while True:
        try:
            async with Admin(server) as admin:
                await admin.describe_cluster()
                return
        except ClientError as error:
            if broker.poll() is not None:
                raise JobError(f"the broker stopped; see {output}") from error
            if asyncio.get_running_loop().time() > deadline:
                raise JobError(f"the broker does not respond: {error}") from error
            await asyncio.sleep(0.1)

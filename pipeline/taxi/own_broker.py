"""A broker for the example: a process of its own on a free port of loopback; its log is in the example's directory."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from client import Admin, ClientError
from pipeline.jobs import JobError

_ROOT = Path(__file__).resolve().parents[2]
_STARTED_WITHIN_S = 60
_STOPPED_WITHIN_S = 30


@contextmanager
def own_broker(directory: Path) -> Iterator[str]:
    """Yield its bootstrap server when it serves; it is stopped when the `with` ends. Raises `JobError` if it cannot."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"127.0.0.1:{free.getsockname()[1]}"
    properties = {"listeners": f"PLAINTEXT://{server}", "log.dirs": str(directory / "log"), "metrics.port": "-1"}
    command = [sys.executable, "-m", "broker"]
    command += [part for name, value in properties.items() for part in ("--override", f"{name}={value}")]
    output = directory / "broker.log"
    with output.open("wb") as log:
        broker = subprocess.Popen(command, env=environment(), stdout=log, stderr=log)  # noqa: S603 - our own command
    try:
        asyncio.run(_serves(broker, server, output))
        yield server
    finally:
        broker.terminate()
        try:
            broker.wait(_STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            broker.kill()
            broker.wait()


def environment() -> dict[str, str]:
    """That of this process, in which another interpreter finds the project."""
    paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


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

"""A broker for the example: a process of its own on a free port of loopback; its log is in the example's directory."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odradek.client import Admin, ClientError
from odradek.pipeline.jobs import JobError
from odradek.pipeline.taxi.processes import environment, running

_STARTED_WITHIN_S = 60


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

"""A server under test: a process that listens on loopback, with a log directory of its own."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Below the range of Linux for outgoing connections, so that the port of a restarted server is free. Each worker of
# xdist has a share: another one could take a port between its choice and the start of the server.
_SHARES = 5
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _SHARES
PORTS = range(10_000 + _WORKER, 32_000, _SHARES)

_BLOCK = 16
_BLOCKS = range(4_000 + _WORKER * _BLOCK, 10_000 - _BLOCK, _SHARES * _BLOCK)
"""Where the consecutive ports of several workers of one machine begin."""

TOPIC_DEFAULTS = {
    "log.retention.ms": "-1",  # tests write records of years ago
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
}


class NotStartedError(Exception):
    """The process ended, or took too long, before it could serve."""


@dataclass
class Server:
    """One broker process. `stop` and `kill` may follow each other in any order; `start` begins a new process with the
    same command, port and log directory.
    """

    kind: str
    command: Sequence[str]
    port: int
    log_dir: Path
    output: Path
    is_ready: Callable[[Server], bool]
    metrics_port: int | None = None
    jmx_port: int | None = None
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self, timeout: float = 100, *, wait: bool = True) -> Server:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        if wait:
            self.wait_until_ready(timeout)
        return self

    def wait_until_ready(self, timeout: float = 100) -> None:
        attempts = int(timeout / 0.02)
        for _ in range(attempts):
            if self.is_ready(self):
                return
            try:
                status = self.process.wait(0.02)  # the pause between two attempts, cut short by an early end
            except subprocess.TimeoutExpired:
                continue
            raise NotStartedError(f"{self.kind} ended with {status} before it served\n{self.printed()[-4000:]}")
        self.kill()
        raise NotStartedError(f"{self.kind} did not serve within {timeout} s\n{self.printed()[-4000:]}")

    def stop(self, timeout: float = 90) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL: data that the process had not passed to the kernel are lost."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop the process as a machine does that stalls: its sockets stay open. Returns when it has stopped."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    @property
    def is_alive(self) -> bool:
        """Whether there is a process; it may be paused."""
        return hasattr(self, "process") and self.process.poll() is None

    def printed(self) -> str:
        return self.output.read_text(errors="replace")

    def resident_bytes(self) -> int:
        """The resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


_chosen: set[int] = set()


def free_port() -> int:
    """Return a port that nothing listens on, and that this process has not chosen before."""
    while True:
        port = random.choice(PORTS)
        if port in _chosen:
            continue
        _chosen.add(port)
        if _is_free(port):
            return port


def consecutive_ports(count: int) -> int:
    """Return the first of up to 16 ports in a row that nothing listens on, and that were not chosen before."""
    while True:
        first = random.choice(_BLOCKS)
        ports = range(first, first + count)
        if _chosen.isdisjoint(ports) and all(map(_is_free, ports)):
            _chosen.update(ports)
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def accepts_connections(server: Server) -> bool:
    return accepts_at(server.port, server.host)


def accepts_at(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something listens there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

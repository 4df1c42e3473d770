"""`make cluster`: its guide is right, and it leaves no process behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.peers import etcd
from tests.peers.server import free_port

pytestmark = etcd.MARKS

REPOSITORY = Path(__file__).parents[2]


def command(port: int, directory: Path) -> list[str]:
    return [sys.executable, "-m", "demo.three_brokers", "--port", str(port), "--data", str(directory)]


@contextmanager
def demo(port: int, directory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, and what it has printed when all processes serve."""
    with subprocess.Popen(command(port, directory), cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            printed = ""
            while "Ctrl-C stops all" not in printed:
                line = process.stdout.readline()
                assert line, printed
                printed += line
            yield process, printed
        finally:
            process.send_signal(signal.SIGINT)


def three_free_ports() -> int:
    """Return the first of three."""
    while True:
        first = free_port()
        try:
            for port in range(first, first + 3):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGHUP], ids=["at Ctrl-C", "with its terminal"])
def test_the_processes_that_the_guide_names_end_also_after_the_death_of_some(
    tmp_path: Path, end: signal.Signals
) -> None:
    port = three_free_ports()
    with demo(port, tmp_path / "data") as (process, guide):
        pids = {name: int(pid) for name, pid in re.findall(r"^  (broker \d|etcd) +kill -9 (\d+)$", guide, re.MULTILINE)}
        assert pids.keys() == {"broker 1", "broker 2", "broker 3", "etcd"}
        assert ",".join(f"127.0.0.1:{each}" for each in range(port, port + 3)) in guide

        for name in ("broker 2", "etcd"):
            os.kill(pids[name], signal.SIGKILL)
        assert process.stdout is not None
        ended = {line.split(" has ended")[0] for line in (process.stdout.readline() for _ in range(3)) if line.strip()}
        if end is signal.SIGHUP:
            process.stdout.close()
        process.send_signal(end)

        assert process.wait(120) == 0
    assert ended == {"broker-2", "etcd"}
    assert not [name for name, pid in pids.items() if exists(pid)]


def test_a_port_that_is_taken_is_reported_before_anything_starts(tmp_path: Path) -> None:
    port = three_free_ports()
    with socket.create_server(("127.0.0.1", port + 2)):
        done = subprocess.run(
            command(port, tmp_path / "data"), cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"Port {port + 2} of 127.0.0.1 cannot be used (Address already in use): ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()

"""The process: command line, signals, exit status, output."""

from __future__ import annotations

import asyncio
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.errors import ErrorCode
from tests.handlers.requests import batch, create, fetch, fetch_request, produce, values_in
from tests.peers import odradek
from tests.peers.server import Server
from tests.wire import Wire

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[2]


def exists(path: Path) -> bool:
    return path.exists()


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "odradek.broker", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    prepared = odradek.prepare(tmp_path)
    yield prepared
    if hasattr(prepared, "process") and prepared.process.poll() is None:
        prepared.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(server: Server, number: signal.Signals) -> None:
    server.start()

    server.process.send_signal(number)

    assert server.process.wait(60) == 0
    assert (server.log_dir / ".kafka_cleanshutdown").exists()
    assert "stopped" in server.printed()
    assert "Traceback" not in server.printed()


async def test_it_says_where_it_listens(server: Server) -> None:
    server.start()
    async with Wire("127.0.0.1", server.port) as wire:
        await create(wire, "t")  # it may be connected to just before it says so, but it answers only then

    assert f"listening listener=PLAINTEXT address=127.0.0.1:{server.port}" in server.printed()
    assert "broker started" in server.printed()


def test_the_first_line_names_the_version_the_directory_and_the_addresses(server: Server) -> None:
    server.start()

    first = server.printed().splitlines()[0]
    assert re.search(r'starting version="\S+ \((compiled|plain Python)\)" ', first)
    assert f" log.dirs={server.log_dir} listeners=PLAINTEXT://127.0.0.1:" in first


def test_a_log_directory_without_an_absolute_path_is_named_with_it(tmp_path: Path) -> None:
    """The directory of a process without arguments must be easy to find."""
    (tmp_path / "file").touch()
    done = run("--override", "log.dirs=file", cwd=tmp_path)

    assert f" log.dirs={tmp_path / 'file'} " in done.stderr.splitlines()[0]


def test_a_file_in_place_of_a_log_directory_is_one_line_and_status_1(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        done = run("--override", f"log.dirs={path}")
        assert done.returncode == 1
        said = "log.dirs must name directories, and this is a file or lies below one"
        assert done.stderr.splitlines()[1:] == [f"odradek: {path}: {said}"]


def test_a_taken_port_of_the_metrics_is_one_line_with_its_property_and_the_cure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--override", f"metrics.port={port}", "--override", f"log.dirs={tmp_path}")

    assert done.returncode == 1
    address = f"127.0.0.1:{port} (metrics.host, metrics.port)"
    cure = "metrics.port=0 takes any free port, -1 none"
    assert done.stderr.splitlines()[1:] == [
        f"odradek: cannot serve metrics on {address}: Address already in use; {cure}"
    ]


async def test_what_is_in_flight_is_answered_before_it_ends(server: Server) -> None:
    server.start()
    async with Wire("127.0.0.1", server.port) as wire:
        await create(wire, "t")
        await produce(wire, "t", batch(b"a"))
        request = fetch_request("t", 1, max_wait_ms=60_000)
        await wire.send(request, 12)
        async with Wire("127.0.0.1", server.port) as other:  # served after the fetch was read, so that is parked now
            await produce(other, "u", batch(b"a"))

        server.process.send_signal(signal.SIGTERM)
        response = await asyncio.wait_for(wire.receive(request, 12), 50)

    assert response.responses[0].partitions[0].high_watermark == 1
    assert await asyncio.to_thread(server.process.wait, 50) == 0


def test_a_port_in_use_is_one_line_and_status_1(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--override", f"listeners=PLAINTEXT://127.0.0.1:{port}", "--override", f"log.dirs={tmp_path}")

    assert done.returncode == 1
    refusal = f"odradek: cannot listen on PLAINTEXT://127.0.0.1:{port} (listeners): Address already in use"
    assert done.stderr.splitlines()[1:] == [refusal]


def test_a_directory_in_use_is_one_line_and_status_1(server: Server) -> None:
    server.start()

    done = run("--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", f"log.dirs={server.log_dir}")

    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [f"odradek: another broker is using the log directory {server.log_dir}"]


def test_every_mistake_in_the_configuration_is_a_line_of_its_own() -> None:
    done = run("--override", "listners=x", "--override", "num.partitions=many")

    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["odradek", "odradek"]
    assert "did you mean listeners?" in done.stderr


def test_a_file_that_is_not_there() -> None:
    done = run("--config", "/no/such/file")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == ["odradek: cannot read /no/such/file: No such file or directory"]


@pytest.mark.parametrize("arguments", [["--confg", "x"], ["--override", "num.partitions"], ["--override", "=1"], ["x"]])
def test_a_wrong_command_line_is_status_2(arguments: list[str]) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert done.stderr.startswith("python -m odradek.broker: error: ")
    assert done.stderr.count("\n") == 1


def test_overrides_go_before_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text(
        f"node.id=1\nlog.dirs={tmp_path / 'log'}\nlisteners=PLAINTEXT://127.0.0.1:1\n"
    )

    done = run("--config", str(tmp_path / "a.properties"), "--override", "listeners=NONSENSE")

    assert done.returncode == 1
    assert "NONSENSE" in done.stderr


def test_help_and_version() -> None:
    properties = run("--help-config")
    assert properties.returncode == 0
    assert "log.segment.bytes" in properties.stdout

    version = run("--version")
    assert version.returncode == 0
    assert re.fullmatch(r"odradek \S+ \((compiled|plain Python)\)\n", version.stdout)


async def test_a_failing_disk_ends_it_and_what_was_acknowledged_is_there_again(server: Server) -> None:
    server.start()
    async with Wire("127.0.0.1", server.port) as wire:
        await create(wire, "t")
        first = await produce(wire, "t", batch(b"acknowledged"))
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        refused = await produce(wire, "t", batch(b"x" * 500_000))

    assert (first.error_code, refused.error_code) == (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    assert await asyncio.to_thread(server.process.wait, 10) == 1
    assert not exists(server.log_dir / ".kafka_cleanshutdown")
    assert "offline" in server.printed()

    await asyncio.to_thread(server.start)
    async with Wire("127.0.0.1", server.port) as wire:
        assert values_in(await fetch(wire, "t")) == [b"acknowledged"]

"""`--explain` of the commands that run a broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka import Producer

pytestmark = pytest.mark.process

RUN = {
    "odradek dev": ("-m", "odradek", "dev", "--port", "0"),
    "odradek broker": ("-m", "odradek", "broker", "--override", "listeners=PLAINTEXT://127.0.0.1:0"),
}


@contextmanager
def dev(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str], str]]:
    """Run `odradek dev`, yield the process, its output and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "dev", "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip().partition("=")[2]
        process.stdout.readline()
        yield process, process.stdout, address
    finally:
        process.kill()
        process.communicate()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("orders", b"value", key=b"key")
    assert producer.flush(60) == 0


def test_it_prints_requests_and_what_they_cause() -> None:
    with dev("--explain") as (process, out, bootstrap):
        produce(bootstrap)
        process.send_signal(signal.SIGINT)
        text = out.read()
        assert process.wait(60) == 0

    assert 'key="key" value="value"' in text
    assert "write orders-0/00000000000000000000.log: " in text
    assert " ApiVersions v" in text
    assert "\x1b" not in text


def test_only_named_apis_are_printed() -> None:
    with dev("--explain", "Produce,EndTxn") as (process, out, bootstrap):
        produce(bootstrap)
        process.send_signal(signal.SIGINT)
        text = out.read()

    assert " Produce v" in text
    assert " ApiVersions v" not in text
    assert " Metadata v" not in text


def test_a_reader_that_closes_the_output_does_not_stop_the_broker() -> None:
    with dev("--explain") as (process, out, bootstrap):
        out.close()
        for _ in range(3):
            produce(bootstrap)
        assert process.poll() is None
        process.stdout = None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize("command", RUN)
def test_an_unknown_api_is_refused_with_the_nearest_name(command: str) -> None:
    done = subprocess.run(
        [sys.executable, *RUN[command], "--explain", "Fetsh"], capture_output=True, text=True, check=False, timeout=60
    )

    assert done.returncode == 2
    assert "no API is called 'Fetsh'; did you mean Fetch?" in done.stderr


def test_the_broker_prints_to_standard_output_and_logs_to_standard_error(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, *RUN["odradek broker"], "--override", f"log.dirs={tmp_path / 'data'}", "--explain"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        while " started" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()

    assert "fsync ." in out  # a clean stop writes its marker

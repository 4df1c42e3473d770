"""`odradek dev`: a broker as a process, whose data are gone at the end, or stay in a directory."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

pytestmark = pytest.mark.process


@contextmanager
def dev(*arguments: str) -> Iterator[tuple[str, str]]:
    """Run the command, yield its two lines, and end it as Ctrl-C does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "dev", "--port", "0", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process.stdout.readline(), process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, "", "")
    finally:
        process.kill()
        process.communicate()


def produce(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("t", b"value")
    assert producer.flush(60) == 0


def read(bootstrap: str) -> bytes | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        message = consumer.poll(60)
        assert message is not None
        return message.value()
    finally:
        consumer.close()


def test_topics_are_created_and_temporary_data_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with dev() as (address, about):
        name, _, bootstrap = address.strip().partition("=")
        assert (name, about) == (
            "bootstrap.servers",
            "The data are temporary, and removed at the end. Ctrl-C ends it.\n",
        )
        produce(bootstrap)
        assert read(bootstrap) == b"value"
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_directory_keeps_the_data(tmp_path: Path) -> None:
    kept = ("--dir", str(tmp_path / "kept"))
    with dev(*kept, "--override", "num.partitions=3") as (address, about):
        assert about == f"The data are in {kept[1]}. Ctrl-C ends it.\n"
        produce(address.strip().partition("=")[2])
    assert {one.name for one in (tmp_path / "kept").glob("t-*")} == {"t-0", "t-1", "t-2"}
    with dev(*kept) as (address, _):
        assert read(address.strip().partition("=")[2]) == b"value"


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (("--override", "num.partition=3"), 1, "odradek: "),
        (("--port", "70000"), 2, "'70000' is not a port: write 0 to 65535"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], status: int, reason: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "dev", *arguments], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == status
    assert reason in done.stderr
    assert "Traceback" not in done.stderr

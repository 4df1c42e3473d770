"""A comparison of brokers for tests: `python -m benchmarks.comparison` prints the table of docs/comparison.md.

| broker | what is started |
|---|---|
| Apache Kafka | the JVM as its own scripts start it, on a new directory; what a container adds is not there |
| Odradek, a process | `python -m broker` |
| Odradek, in the test's process | `odradek.broker.testing.threaded.ThreadedBroker`, the first with its imports, and a
second |
| kfake, a process | the program in `benchmarks/kfake`; needs Go and its module proxy once |

They take turns, each on a new directory and a free port. *Start* is from the start of the process (embedded: of the
import) to the first response to Metadata that names a broker. *Round trip* is the next step of a test, with librdkafka:
a new producer, a topic that it creates, an acknowledged record, a new consumer of a new group that reads it.
*Processor* is the broker's processor time for both; other work on the machine affects it least. *Memory* is resident
memory after that; embedded, the memory that the broker added to the interpreter. *Stop* is from SIGTERM to the end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Consumer, Producer

from benchmarks.side_by_side import load, usage
from benchmarks.side_by_side.contest import KAFKA_OPTIONS
from odradek.broker.build_info import is_compiled
from odradek.protocol.messages.metadata import MetadataRequest
from tests.peers import apache, java, odradek
from tests.peers.server import Server

ROUNDS = 7
HERE = Path(__file__).parent

_METADATA = load.frame(MetadataRequest(topics=[]), 12)
_SECONDS = 60
_FIGURES = {"format": "s", "start": "s", "round trip": "s", "processor": "s", "memory": "MB", "stop": "s"}

Sample = dict[str, float]


def _answers(port: int) -> None:
    """Wait for a response to Metadata that names a broker."""
    give_up = time.monotonic() + _SECONDS
    while time.monotonic() < give_up:
        try:
            if load.ask(port, _METADATA)[1].brokers:
                return
        except (OSError, struct.error):  # not listening yet, or it closed the connection without a response
            pass
        time.sleep(0.002)
    raise RuntimeError(f"nothing answered on port {port} within {_SECONDS} s")


def _round_trip(port: int) -> float:
    """Return the seconds that a test takes to produce its first record and to read it as a member of a group."""
    began = time.perf_counter()
    bootstrap = {"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}
    producer = Producer(bootstrap)
    producer.produce("orders", b"three socks")
    assert producer.flush(_SECONDS) == 0
    consumer = Consumer(bootstrap | {"group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    message = consumer.poll(_SECONDS)
    assert message is not None
    assert message.value() == b"three socks", message.error()
    taken = time.perf_counter() - began
    consumer.close()
    return taken


def _used(pid: int) -> Sample:
    return {"processor": usage.cpu_seconds(pid), "memory": usage.resident_bytes(pid) / 1e6}


def measure_server(prepare: Callable[[Path], Server]) -> Sample:
    """Measure a broker with a configuration; Apache Kafka formats its directory first."""
    with TemporaryDirectory(prefix="comparison-") as directory:
        began = time.perf_counter()
        server = prepare(Path(directory) / "broker")
        sample = {"format": time.perf_counter() - began} if server.kind == "apache" else {}
        began = time.perf_counter()
        server.start(wait=False)
        try:
            _answers(server.port)
            sample["start"] = time.perf_counter() - began
            sample["round trip"] = _round_trip(server.port)
            sample |= _used(server.process.pid)
            began = time.perf_counter()
            server.stop()
            sample["stop"] = time.perf_counter() - began
        finally:
            server.kill()
    return sample


@contextmanager
def _program(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def _of_kfake(program: Path) -> Sample:
    began = time.perf_counter()
    with _program([str(program)]) as process:
        assert process.stdout is not None
        address, _ = process.stdout.readline().split()
        port = int(address.rpartition(":")[2])
        _answers(port)
        sample = {"start": time.perf_counter() - began, "round trip": _round_trip(port)}
        sample |= _used(process.pid)
        began = time.perf_counter()
        process.terminate()
        process.wait(_SECONDS)
        return sample | {"stop": time.perf_counter() - began}


def measure_embedded(which: str) -> Sample:
    """Measure in a separate interpreter, which starts brokers on request: the first, or a second one."""
    with _program([sys.executable, "-m", "benchmarks.embedded"], stdin=subprocess.PIPE) as process:
        requests, answers = process.stdin, process.stdout
        assert requests is not None
        assert answers is not None

        def ask() -> Sample:
            requests.write("\n")
            requests.flush()
            answer: Sample = json.loads(answers.readline())
            return answer

        memory = ask()["memory"]
        sample: Sample = {}
        for _ in range(1 if which == "first" else 2):
            before = _used(process.pid)
            started = ask()
            began = time.perf_counter()
            _answers(int(started["port"]))
            sample = {"start": started["start"] + time.perf_counter() - began}
            sample["round trip"] = _round_trip(int(started["port"]))
            used = _used(process.pid)
            sample["processor"] = used["processor"] - before["processor"]
            sample["memory"] = used["memory"] - memory
            sample["stop"] = ask()["stop"]
        return sample


def _brokers(directory: Path) -> dict[str, Callable[[], Sample]]:
    found: dict[str, Callable[[], Sample]] = {
        f"Apache Kafka {java.KAFKA_VERSION}": partial(measure_server, partial(apache.prepare, options=KAFKA_OPTIONS)),
        "Odradek, a process": partial(measure_server, odradek.prepare),
        "Odradek, embedded, the first": partial(measure_embedded, "first"),
        "Odradek, embedded, one more": partial(measure_embedded, "second"),
    }
    if go := shutil.which("go"):
        program = directory / "kfake"
        subprocess.run([go, "build", "-o", program, "."], cwd=HERE / "kfake", check=True)
        found["kfake, a process"] = partial(_of_kfake, program)
    return found


def measure(rounds: int) -> None:
    samples: dict[str, list[Sample]] = {}
    load_average = os.getloadavg()[0]
    with TemporaryDirectory(prefix="kfake-") as directory:
        brokers = _brokers(Path(directory))
        for counted in (False, *(True,) * rounds):  # the first round only warms the page cache
            for name, start in brokers.items():
                sample = start()
                figures = ", ".join(f"{figure} {value:.3g}" for figure, value in sample.items())
                print(f"{name}: {figures}{'' if counted else ' (not counted)'}", file=sys.stderr, flush=True)
                if counted:
                    samples.setdefault(name, []).append(sample)
    build = "compiled" if is_compiled() else "plain Python"
    print(f"Odradek: {build}. Medians of {rounds} rounds (lowest to highest). Load before: {load_average:.1f}\n")
    print(f"| | {' | '.join(_FIGURES)} |")
    print(f"|---|{'---|' * len(_FIGURES)}")
    for name, rows in samples.items():
        print(f"| {name} | {' | '.join(format_cell(rows, figure) for figure in _FIGURES)} |")


def format_cell(rows: list[Sample], figure: str) -> str:
    """Return the median of a figure in the rows that have it, with the lowest and the highest; nothing if none has."""
    values = [row[figure] for row in rows if figure in row]
    if not values:
        return ""
    digits = ".0f" if figure == "memory" else ".2f"
    return f"{median(values):{digits}} {_FIGURES.get(figure, 's')} ({min(values):{digits}}–{max(values):{digits}})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparison")
    parser.add_argument("rounds", nargs="?", type=int, default=ROUNDS)
    measure(parser.parse_args().rounds)


if __name__ == "__main__":
    main()

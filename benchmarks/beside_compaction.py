"""The latency of a producer on an idle broker, and while the broker compacts a large log.

The broker has a log of a topic with the policy `delete`. A producer sends single records of 100 bytes to another topic
at a fixed rate, and waits for each acknowledgement (acks=all). The time of a request starts when it was due, so that a
stall counts for every request that it delayed. After an idle phase the topic's policy becomes `compact`, and the
producer continues until the log is compacted.

    python -m benchmarks.beside_compaction [--mib 1024] [--value 100 1000] [--rate 500] [--rounds 2] [--server apache]

prints a Markdown table, and the medians of the ratios. Writing the logs takes longer than the rest; with `--source
DIRECTORY` they are written there once and reused.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cleaner import TOPIC, create_topic, make, read, set_policy
from benchmarks.side_by_side import load
from benchmarks.side_by_side.usage import cpu_seconds
from odradek.protocol.compression.codecs import Codec
from odradek.protocol.framing import SIZE_PREFIX
from tests.peers import apache, odradek
from tests.peers.server import Server

PRODUCED = "produced"
KEYS = 200_000
SERVERS = {"odradek": odradek.prepare, "apache": apache.prepare}
PROPERTIES = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "0",
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--mib", type=int, default=1024)
    arguments.add_argument("--value", type=int, nargs="+", default=[100, 1000], help="bytes of a value of the log")
    arguments.add_argument("--rate", type=int, default=500, help="records produced a second")
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--idle", type=float, default=12, help="seconds without compaction")
    arguments.add_argument("--server", choices=SERVERS, default="odradek")
    arguments.add_argument("--source", type=Path)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        sources = {value: (given.source or Path(directory)) / f"v{value}" for value in given.value}
        for value, source in sources.items():
            if not source.exists():
                make(source, given.mib, value, KEYS, Codec.NONE)
        print(f"| {given.mib} MiB of records of | alone | beside compaction | p50 | p99 | took | CPU |")
        print("|---|---|---|---|---|---|---|")
        for value, source in sources.items():
            found = [
                measure(given.server, Path(directory) / str(number), source, given.rate, given.idle)
                for number in range(given.rounds)
            ]
            for beside in found:
                alone, compaction = formatted(beside.alone), formatted(beside.compaction)
                print(f"| {value} bytes | {alone} | {compaction} | {beside.ratios} |")
            ratios = [f"p{part} x{median(each.ratio(part) for each in found):.2f}" for part in (50, 99)]
            print(f"| {value} bytes, the median | | | {' | '.join(ratios)} | | |", flush=True)


class Beside(NamedTuple):
    """One round: the milliseconds of each request, ascending, and the cost of the compaction."""

    alone: list[float]
    compaction: list[float]
    seconds: float
    cpu_seconds: float

    def ratio(self, part: float) -> float:
        return of(self.compaction, part) / of(self.alone, part)

    @property
    def ratios(self) -> str:
        """Return the cells after the latencies."""
        return f"x{self.ratio(50):.2f} | x{self.ratio(99):.2f} | {self.seconds:.1f} s | {self.cpu_seconds:.1f} s"


def measure(kind: str, directory: Path, source: Path, rate: int, idle_seconds: float) -> Beside:
    server = serving(kind, directory, source)
    try:
        frame = load.produce_frame(PRODUCED, [0], load.batch(1, 100), acks=-1)
        load.accepted_bytes(server.port, frame)
        ends = time.perf_counter() + idle_seconds
        idle = produce(server.port, frame, rate, lambda: time.perf_counter() > ends)
        set_policy(server, "compact")
        started, used = time.perf_counter(), cpu_seconds(server.process.pid)
        checkpoint = server.log_dir / "cleaner-offset-checkpoint"
        beside = produce(server.port, frame, rate, lambda: TOPIC in read(checkpoint))
        seconds, used = time.perf_counter() - started, cpu_seconds(server.process.pid) - used
    finally:
        server.kill()
        shutil.rmtree(directory)
    return Beside(idle, beside, seconds, used)


def serving(kind: str, directory: Path, source: Path) -> Server:
    """Run a server with a topic whose log is that in `source`."""
    server = SERVERS[kind](directory, PROPERTIES)
    server.start()
    create_topic(server)
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(PRODUCED, 1, 1)])[PRODUCED].result(30)
    server.stop()
    for path in (source / f"{TOPIC}-0").iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, server.log_dir / f"{TOPIC}-0")
    os.sync()  # the write-back is not measured
    return server.start()


def produce(port: int, frame: bytes, rate: int, is_over: Callable[[], bool]) -> list[float]:
    """Send a frame `rate` times a second until the end; return the milliseconds of each, ascending."""
    times: list[float] = []
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answers:
        due = time.perf_counter()
        while len(times) % rate or not is_over():
            time.sleep(max(due - time.perf_counter(), 0))
            connection.sendall(frame)
            answers.read(*SIZE_PREFIX.unpack(answers.read(SIZE_PREFIX.size)))
            times.append((time.perf_counter() - due) * 1000)
            due += 1 / rate
    return sorted(times)


def of(times: list[float], part: float) -> float:
    return times[int(len(times) * part / 100)]


def formatted(times: list[float]) -> str:
    parts = ", ".join(f"p{part} {of(times, part):.2f}" for part in (50, 99, 99.9))
    return f"{parts}, at most {times[-1]:.1f} ms"


if __name__ == "__main__":
    main()

"""Kill a streaming query again and again, and look whether its Parquet files hold every record once.

```sh
python -m tests.pipeline.kill_streams --kills 10 --seed 1     # or: make crash-streams
```
While records are sent to a topic, a query in a process of its own copies it into files (`streaming_job`). At random
moments, at least a batch after the last, something is killed with SIGKILL: the driver, Java and all, which is then
started again on the same checkpoint; or a Python worker, whose task Spark gives to another. In the end the files must
hold what was sent: nothing lost, nothing twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.peers import odradek

TOPIC = "numbers"
PARTITIONS = 3
A_ROUND = 3000
"""Records that are sent at once: six batches."""
_WORKER = b"pyspark.daemon"
_PATIENCE = 300  # seconds that a batch may take, with the start of Java before it


class Query:
    """The process under test."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._command = [sys.executable, "-m", "tests.pipeline.streaming_job", bootstrap, TOPIC, str(directory)]
        self._commits = directory / "checkpoint" / "commits"
        self._output = directory / "output.log"

    def start(self, *arguments: str) -> None:
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def drain(self) -> None:
        """Read to the end of the topic."""
        self.start("--drain")
        assert self.process.wait(_PATIENCE) == 0, self._output.read_text(errors="replace")[-4000:]

    def batches(self) -> int:
        """How many batches are done for good."""
        names = [path.name for path in self._commits.glob("*")] if self._commits.exists() else []
        return max((int(name) + 1 for name in names if name.isdecimal()), default=0)

    def wait_for_batches(self, count: int) -> None:
        for _ in range(_PATIENCE * 20):
            if self.batches() >= count:
                return
            self.pause(0.05)
        raise AssertionError(f"no batch {count} in {_PATIENCE} s\n{self._output.read_text(errors='replace')[-4000:]}")

    def pause(self, seconds: float) -> None:
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return
        raise AssertionError(f"the query ended with {status}\n{self._output.read_text(errors='replace')[-4000:]}")

    def kill_driver(self) -> None:
        """Python, Java and the workers: all of the session that `start` has begun."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_worker(self) -> bool:
        """A Python worker, the youngest: False if there is none at the moment."""
        workers = sorted(self._workers())
        if workers:
            os.kill(workers[-1], signal.SIGKILL)
        return bool(workers)

    def _workers(self) -> Iterator[int]:
        """Workers are forks of a daemon, which is a child of Java; they have its command line."""
        for path in Path("/proc").glob("[0-9]*"):
            try:
                command, status = (path / "cmdline").read_bytes(), (path / "stat").read_text()
            except OSError:
                continue  # it has ended meanwhile
            session = int(status.rpartition(")")[2].split()[3])
            if session == self.process.pid and _WORKER in command:
                yield int(path.name)


def run(bootstrap: str, directory: Path, kills: int, chance: Random) -> int:
    """Send, kill, and read the rest; returns how many records were sent."""
    query = Query(bootstrap, directory)
    query.start()
    try:
        return _kill(query, bootstrap, kills, chance)
    finally:
        if query.process.poll() is None:
            query.kill_driver()


def _kill(query: Query, bootstrap: str, kills: int, chance: Random) -> int:
    sent = 0
    for kill in range(kills):
        sent = send(bootstrap, sent)
        query.wait_for_batches(query.batches() + 1)
        query.pause(chance.uniform(0, 1))
        print(
            f"kill {kill + 1} of {kills}, after {query.batches()} batches: {'a driver' if kill % 2 else 'a worker'}",
            flush=True,
        )
        if kill % 2 == 0:
            while not query.kill_worker():
                query.pause(0.05)
            sent = send(bootstrap, sent)
            query.wait_for_batches(query.batches() + 1)
        else:
            query.kill_driver()
            query.start()
    sent = send(bootstrap, sent)
    query.wait_for_batches(query.batches() + 1)
    query.kill_driver()
    query.drain()
    return sent


def send(bootstrap: str, first: int) -> int:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    for number in range(first, first + A_ROUND):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(30) == 0
    return first + A_ROUND


@contextmanager
def broker(directory: Path) -> Iterator[str]:
    server = odradek.prepare(directory).start()
    try:
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        yield server.bootstrap
    finally:
        server.stop()


def numbers(directory: Path) -> list[int]:
    """What the files hold, as the sink's own log of its batches names them; in order."""
    from pipeline import session

    frame = session("kill streams", master="local[2]").read.parquet(str(directory / "out"))
    rows = frame.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a streaming query again and again.")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, broker(Path(name) / "broker") as bootstrap:
        directory = Path(name) / "query"
        directory.mkdir()
        sent = run(bootstrap, directory, arguments.kills, Random(arguments.seed))
        found = numbers(directory)
    lost, twice = set(range(sent)) - set(found), len(found) - len(set(found))
    print(f"{arguments.kills + 1} kills; {sent} records sent, {len(found)} in files; {len(lost)} lost, {twice} twice")
    sys.exit(1 if lost or twice or len(found) != sent else 0)


if __name__ == "__main__":
    main()

"""Kill a streaming query repeatedly, and check that its Parquet files contain every record once.

```sh
python -m tests.pipeline.kill_streams --kills 10 --seed 1     # or: make crash-streams
```
While records are sent to a topic, a query in a separate process copies it into files (`streaming_job`). Its tasks run
in the executors of a standalone cluster. At random times, at least a batch apart, one process is killed with SIGKILL:

| victim | consequence |
|---|---|
| the driver and its Java | it is restarted with the same checkpoint; its executors may still be writing |
| an executor, with its Python workers | the master starts another, and its tasks are retried |
| a Python worker | its task is retried |

In the end the files must contain every record once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from odradek.pipeline import session
from tests.peers import odradek
from tests.pipeline.spark_cluster import SparkCluster, environment, spark_cluster

TOPIC = "numbers"
PARTITIONS = 3
A_ROUND = 3000
"""Records that are sent together: six batches."""
VICTIMS = ("a driver", "an executor", "a Python worker")
_PATIENCE = 300  # seconds for a batch, including the start of Java


class Query:
    """The process under test, and its processes in the cluster."""

    def __init__(self, bootstrap: str, directory: Path, cluster: SparkCluster) -> None:
        self._cluster = cluster
        self._command = [sys.executable, "-m", "tests.pipeline.streaming_job", bootstrap, TOPIC, str(directory)]
        self._command += ["--master", cluster.master]
        self._commits = directory / "checkpoint" / "commits"
        self._output = directory / "output.log"

    def start(self, *arguments: str) -> None:
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(
                [*self._command, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                env=environment(),
            )  # fmt: skip

    def drain(self) -> None:
        """Read to the end of the topic."""
        self.start("--drain")
        assert self.process.wait(_PATIENCE) == 0, self._output.read_text(errors="replace")[-4000:]

    def batches(self) -> int:
        """Return the number of committed batches."""
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

    def kill(self, victim: str) -> None:
        """Kill and restart the driver; or kill an executor or a Python worker as soon as one exists."""
        if victim == "a driver":
            self.kill_driver()
            self.start()
            return
        find = self._cluster.executors if victim == "an executor" else self._cluster.python_workers
        while not (found := find()):
            self.pause(0.05)
        os.kill(found[-1], signal.SIGKILL)

    def kill_driver(self) -> None:
        """Kill all processes of the session that `start` created."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run(bootstrap: str, directory: Path, victims: Sequence[str], chance: Random, cluster: SparkCluster) -> int:
    """Send records, kill each of `victims` in turn, then the driver; read the rest; return the number sent."""
    query = Query(bootstrap, directory, cluster)
    query.start()
    try:
        return _kill(query, bootstrap, victims, chance)
    finally:
        if query.process.poll() is None:
            query.kill_driver()


def _kill(query: Query, bootstrap: str, victims: Sequence[str], chance: Random) -> int:
    sent = 0
    for number, victim in enumerate(victims, 1):
        sent = send(bootstrap, sent)
        query.wait_for_batches(query.batches() + 1)
        query.pause(chance.uniform(0, 1))
        print(f"kill {number} of {len(victims)}, after {query.batches()} batches: {victim}", flush=True)
        query.kill(victim)
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


def numbers(spark: SparkSession, directory: Path) -> list[int]:
    """Return the values in the files that the sink's log of batches names, in order."""
    frame = spark.read.parquet(str(directory / "out"))
    rows = frame.selectExpr("cast(cast(value as string) as int) as number").collect()
    return sorted(row.number for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill a streaming query again and again.")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chance = Random(arguments.seed)
    victims = [victim for _ in range(arguments.kills) for victim in chance.sample(VICTIMS, len(VICTIMS))]
    with ExitStack() as ending:
        scratch = Path(ending.enter_context(tempfile.TemporaryDirectory()))
        directory = scratch / "query"
        directory.mkdir()
        bootstrap = ending.enter_context(broker(scratch / "broker"))
        cluster = ending.enter_context(spark_cluster(scratch))
        sent = run(bootstrap, directory, victims[: arguments.kills], chance, cluster)
        found = numbers(session("kill streams", master="local[2]"), directory)
    lost, twice = set(range(sent)) - set(found), len(found) - len(set(found))
    print(f"{arguments.kills + 1} kills; {sent} records sent, {len(found)} in files; {len(lost)} lost, {twice} twice")
    sys.exit(1 if lost or twice or len(found) != sent else 0)


if __name__ == "__main__":
    main()

"""A Spark standalone cluster on loopback: a master and two workers as processes, ended by their pids.

```
test ── master
     ├─ worker ── executor of an application ── daemon of Python workers ── Python worker
     └─ worker ── executor …
```
The processes of an application in the cluster are descendants of the workers, so they can be found and killed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pyspark

from odradek.pipeline.taxi.processes import running
from tests.peers.java import FOR_SECONDS
from tests.peers.server import free_port

WORKERS = 2

_SPARK = Path(pyspark.__file__).parent
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_PYTHON = b"pyspark.daemon"
_REGISTERED_WITHIN_S = 120


class SparkCluster:
    """`master`: the URL for a session or spark-submit; `workers`: the pids of Spark's workers."""

    def __init__(self, master: str, workers: list[int]) -> None:
        self.master = master
        self._workers = workers

    def executors(self) -> list[int]:
        """The pids of the executors' JVMs, the newest last."""
        return [pid for pid, command in self._descendants() if _EXECUTOR in command]

    def python_workers(self) -> list[int]:
        """The pids of the Python processes that run tasks, and of the daemons that fork them; the newest last."""
        return [pid for pid, command in self._descendants() if _PYTHON in command]

    def _descendants(self) -> list[tuple[int, bytes]]:
        """Return the pids and command lines of all descendants of the workers."""
        parents, commands = {}, {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                commands[int(path.name)] = (path / "cmdline").read_bytes()
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # the process ended meanwhile
        found = set(self._workers)
        while grown := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
            found |= grown
        return [(pid, commands[pid]) for pid in sorted(found - set(self._workers))]


@contextmanager
def spark_cluster(scratch: Path) -> Iterator[SparkCluster]:
    """Run a cluster with both workers registered; end its processes when the `with` ends."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as processes:
        log = scratch / "master.log"
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        master_class = "org.apache.spark.deploy.master.Master"
        processes.enter_context(_spark_class(log, master_class, *place, "--port", str(port)))
        workers = []
        for number in range(WORKERS):
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(scratch / f"worker-{number}")]
            worker = ("org.apache.spark.deploy.worker.Worker", *place, *resources, master)
            workers.append(processes.enter_context(_spark_class(scratch / f"worker-{number}.log", *worker)).pid)
        deadline = time.monotonic() + _REGISTERED_WITHIN_S
        while log.read_text().count("Registering worker") < WORKERS:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield SparkCluster(master, workers)


def _spark_class(log: Path, *arguments: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Run a class of Spark in a JVM."""
    return running([str(_SPARK / "bin" / "spark-class"), *arguments], log, environment())


def spark_submit(master: str, *arguments: str) -> list[str]:
    """Return the command line of spark-submit with a driver on loopback."""
    bound = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    return [str(_SPARK / "bin" / "spark-submit"), "--master", master, *bound, *arguments]


def environment(python: str = sys.executable) -> dict[str, str]:
    """Return the environment of the cluster and of drivers: loopback, without this process's import path.

    Spark's Python processes run the interpreter `python`.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "SPARK_HOME": str(_SPARK),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": FOR_SECONDS,
    }

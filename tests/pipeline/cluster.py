"""Jobs on a Spark standalone master with two workers on loopback: `make pipeline-cluster`.

```
master ◄── worker, worker          each a process, one core, ended by its pid
   ▲
   ├── python -m pipeline verify DIR --master spark://…               the job sends its packages itself
   └── spark-submit --py-files odradek.zip pipeline/__main__.py …     the packaged project
```
Both must print what `python -m broker verify` finds, and the workers must have imported the project from the archive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.peers.server import free_port

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "storage" / "golden_dirs"
SPARK = Path(pyspark.__file__).parent

_REGISTERED_WITHIN_S = 120
_ENDED_WITHIN_S = 30
_JOB_WITHIN_S = 300

_WHERE = """
from pyspark.sql import SparkSession

def where(_):
    import pipeline.jobs.verify
    return [pipeline.jobs.verify.__file__]

spark = SparkSession.builder.getOrCreate()
print(*sorted(set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect())))
"""


def main() -> int:
    expected = json.loads(_output([sys.executable, "-m", "broker", "verify", str(GOLDEN), "--json"]))
    with tempfile.TemporaryDirectory() as scratch, _cluster(Path(scratch)) as master:
        print(f"{master} has two workers")
        job = ["verify", str(GOLDEN)]
        assert json.loads(_output([sys.executable, "-m", "pipeline", *job, "--master", master])) == expected
        print("python -m pipeline: as expected")
        archive = f"{scratch}/odradek.zip"
        _output([sys.executable, "-m", "pipeline", "package", archive])
        submit = [str(SPARK / "bin" / "spark-submit"), "--master", master, "--py-files", archive]
        submit += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
        assert _object_in(_output([*submit, str(ROOT / "pipeline" / "__main__.py"), *job])) == expected
        print("spark-submit: as expected")
        script = Path(scratch, "where.py")
        script.write_text(_WHERE)
        places = _output([*submit, str(script)]).split()
        assert places, "no worker answered"
        assert all("odradek.zip" in place for place in places), places
        print("the workers import the project from the archive")
    return 0


@contextmanager
def _cluster(scratch: Path) -> Iterator[str]:
    """The URL of a master that has both workers; all three are gone when the `with` ends."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as processes:
        log = scratch / "master.log"
        place = ["--host", "127.0.0.1", "--webui-port", "0"]
        master_class = "org.apache.spark.deploy.master.Master"
        processes.enter_context(_spark_class(log, master_class, *place, "--port", str(port)))
        for number in range(2):
            resources = ["--cores", "1", "--memory", "1g", "--work-dir", str(scratch / f"worker-{number}")]
            worker = ("org.apache.spark.deploy.worker.Worker", *place, *resources, master)
            processes.enter_context(_spark_class(scratch / f"worker-{number}.log", *worker))
        deadline = time.monotonic() + _REGISTERED_WITHIN_S
        while log.read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        yield master


@contextmanager
def _spark_class(log: Path, *arguments: str) -> Iterator[None]:
    with log.open("wb") as output:
        command = [str(SPARK / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=output, env=_environment(), cwd=log.parent)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _output(command: list[str]) -> str:
    """What a command printed; `verify` may end with 1. What it says on the way goes to our standard error."""
    finished = subprocess.run(
        command, env=_environment(), cwd=ROOT, stdout=subprocess.PIPE, timeout=_JOB_WITHIN_S, text=True, check=False
    )
    assert finished.returncode in (0, 1), command
    return finished.stdout


def _object_in(output: str) -> object:
    """The JSON object of a job under spark-submit, which mixes standard error into the output."""
    found, _ = json.JSONDecoder().raw_decode(output[output.index("{") :])
    return found


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return environment | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "SPARK_HOME": str(SPARK)}


if __name__ == "__main__":
    sys.exit(main())

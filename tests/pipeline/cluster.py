"""Jobs and a stream on a Spark standalone master with two workers on loopback: `make pipeline-cluster`.

Every job here starts a driver and two executors, several minutes in all on two processors, so `make test` omits it. The
Python of the executors lacks the project (`bare_python`), so they can only import what the driver has sent.

```
master ◄── worker, worker          each is a process with one core, ended by its pid
   ▲
   ├── python -m pipeline JOB … --master spark://…                     the job sends its packages
   ├── spark-submit --py-files odradek.zip pipeline/__main__.py JOB …  the packaged project
   ├── a program that calls register(), started in both ways          both formats, in batches and in streams
   └── a streaming query, whose executors and driver are killed (`kill_streams`)
```
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from odradek.client import Producer
from odradek.commands import JOBS
from odradek.pipeline.spark.spark_session import RequirementMissingError, check_requirements
from tests.peers.availability import unavailable
from tests.peers.server import Server
from tests.pipeline import kill_streams
from tests.pipeline.bare_python import bare_python
from tests.pipeline.spark_cluster import SparkCluster, environment, spark_cluster, spark_submit
from tests.pipeline.tables import table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
COUNT = 600
A_COMMAND_S = 900  # on a busy machine
SLOW_PYTHON = ["--conf", "spark.python.authenticate.socketTimeout=300s"]  # of a busy machine; the default is 15 s

_WHERE = """
from pyspark.sql import SparkSession

def where(_):
    import odradek.pipeline.jobs.verify
    return [odradek.pipeline.jobs.verify.__file__]

spark = SparkSession.builder.getOrCreate()
print(*sorted(set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect())))
"""

_FORMATS = """
import json, sys
from pyspark.sql import SparkSession
from odradek.pipeline import register

bootstrap, topic, copy, log_dir, scratch, *settings = sys.argv[1:]
builder = SparkSession.builder
for setting in settings:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
register(spark)
brokers = {"kafka.bootstrap.servers": bootstrap}
records = {"subscribe": topic, "startingOffsets": "earliest"}
rows = spark.range(COUNT).selectExpr("cast(id as string) as key", "cast(id as string) as value")
rows.write.format("broker").options(**brokers, topic=topic).mode("append").save()
stream = spark.readStream.format("broker").options(**brokers, **records).load()
for source, sink, options in (
    (stream, "parquet", {"path": scratch + "/out"}),
    (stream.select("key", "value"), "broker", {**brokers, "topic": copy}),
):
    writer = source.writeStream.format(sink).option("checkpointLocation", scratch + "/checkpoint-" + sink)
    writer.options(**options).trigger(availableNow=True).start().awaitTermination()
print(json.dumps({
    "broker": spark.read.format("broker").options(**brokers, subscribe=copy).load().count(),
    "klog": spark.read.format("klog").option("subscribe", topic).load(log_dir).count(),
    "parquet": spark.read.parquet(scratch + "/out").count(),
}))
spark.stop()
""".replace("COUNT", str(COUNT))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    try:
        check_requirements()
    except RequirementMissingError as error:
        unavailable(str(error))
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return bare_python(tmp_path_factory.mktemp("python") / "bare")


@pytest.fixture
def run_job(cluster: SparkCluster, python: str) -> Callable[..., object]:
    """Run a job on the cluster with `python -m pipeline`; return the JSON object that it prints."""

    def run(*job: str) -> object:
        command = [sys.executable, "-m", "odradek.pipeline", *job, "--master", cluster.master, *SLOW_PYTHON]
        return json.loads(output(command, python))

    return run


@pytest.fixture
def submit(cluster: SparkCluster, python: str, tmp_path: Path) -> Callable[..., str]:
    """Run a program with spark-submit and the packaged project; return its output."""
    archive = tmp_path / "odradek.zip"
    output([sys.executable, "-m", "odradek.pipeline", "package", str(archive)], python)

    def run(program: Path, *arguments: str) -> str:
        command = spark_submit(cluster.master, *SLOW_PYTHON, "--py-files", str(archive), str(program), *arguments)
        return output(command, python)

    return run


@pytest.mark.parametrize("kind", ["odradek"])
def test_jobs_find_the_same_in_either_way_of_submission(
    spark: SparkSession,
    bootstrap: str,
    servers: Callable[[str], Server],
    make_topic: Callable[..., str],
    run_job: Callable[..., object],
    submit: Callable[..., str],
    python: str,
    tmp_path: Path,
) -> None:
    topic, again = make_topic(3), make_topic(3)
    asyncio.run(produce(bootstrap, topic))
    job = ROOT / "pipeline" / "__main__.py"
    export = ["export", "--bootstrap-server", bootstrap, "--topic", topic, "--output", str(tmp_path / "out"), "--json"]
    summary = object_in(submit(job, *export))
    assert summary["records"] == COUNT
    replay = ["replay", "--input", str(tmp_path / "out"), "--bootstrap-server", bootstrap, "--topic", again, "--json"]
    summary = run_job(*replay, "--keep-partitions")
    assert summary["records"] == COUNT
    first, second = (
        table(spark, "broker", bootstrap, subscribe=name).select("key", "value", "partition", "offset")
        for name in (topic, again)
    )
    assert first.exceptAll(second).count() == second.exceptAll(first).count() == 0
    assert second.count() == COUNT
    log_dir = str(servers("odradek").log_dir)
    found = run_job("stats", "--log-dir", log_dir, "--topic", again, "--window", "365d", "--json")
    assert sum(row["records"] for row in found["windows"]) == COUNT
    expected = json.loads(output([sys.executable, "-m", "odradek.broker", "verify", log_dir, "--json"], python))
    assert object_in(submit(job, "verify", log_dir)) == expected


OTHER_JOBS = [
    ("export --log-dir {log_dir} --topic {topic} --output {output}", COUNT),
    ("compact --bootstrap-server {bootstrap} --topic {topic} --output {output}", COUNT),
    ("restore --log-dir {log_dir} --topic {topic} --output {output}", COUNT),
    ("stats --bootstrap-server {bootstrap} --topic {topic}", COUNT),
    ("run taxi --trips 300 --kill-after 0 --output {output}", 300),
]


def test_no_job_is_left_out() -> None:
    in_either_way = {"export", "replay", "stats", "verify"}
    for_spark_submit = {"package"}
    assert in_either_way | for_spark_submit | {line.split()[0] for line, _ in OTHER_JOBS} == set(JOBS)


@pytest.mark.parametrize("kind", ["odradek"])
@pytest.mark.parametrize(("job", "count"), OTHER_JOBS)
def test_every_other_job_runs_on_workers_without_the_project(
    bootstrap: str,
    servers: Callable[[str], Server],
    make_topic: Callable[..., str],
    run_job: Callable[..., object],
    tmp_path: Path,
    job: str,
    count: int,
) -> None:
    topic = make_topic(2)
    asyncio.run(produce(bootstrap, topic))
    log_dir = str(servers("odradek").log_dir)
    line = job.format(bootstrap=bootstrap, topic=topic, log_dir=log_dir, output=tmp_path / "out")
    found = run_job(*line.split(), "--json")
    is_stats = job.startswith("stats")
    counted = sum(row["records"] for row in found["windows"]) if is_stats else found["records"]
    assert counted >= count if job.startswith("run") else counted == count, found  # trips are also corrected


@pytest.mark.parametrize("kind", ["odradek"])
@pytest.mark.parametrize("is_submitted", [False, True])
def test_both_formats_work_in_a_session_of_the_user(
    cluster: SparkCluster,
    python: str,
    bootstrap: str,
    servers: Callable[[str], Server],
    make_topic: Callable[..., str],
    submit: Callable[..., str],
    tmp_path: Path,
    is_submitted: bool,
) -> None:
    topic, copy = make_topic(2), make_topic(2)
    arguments = [bootstrap, topic, copy, str(servers("odradek").log_dir), str(tmp_path)]
    if is_submitted:
        program = tmp_path / "formats.py"
        program.write_text(_FORMATS)
        printed = submit(program, *arguments)
    else:
        settings = [f"spark.master={cluster.master}", "spark.driver.host=127.0.0.1", *SLOW_PYTHON[1:]]
        printed = output([sys.executable, "-c", _FORMATS, *arguments, *settings], python)
    (counts,) = [line for line in printed.splitlines() if line.startswith('{"broker"')]
    assert json.loads(counts) == {"broker": COUNT, "klog": COUNT, "parquet": COUNT}


def test_workers_import_the_project_from_the_archive(submit: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "where.py"
    script.write_text(_WHERE)
    places = submit(script).split()
    assert places, "no worker answered"
    assert all("odradek.zip" in place for place in places), places


def test_a_stream_whose_processes_are_killed_loses_no_record(
    spark: SparkSession, cluster: SparkCluster, tmp_path: Path
) -> None:
    directory = tmp_path / "query"
    directory.mkdir()
    with kill_streams.broker(tmp_path / "broker") as bootstrap:
        sent = kill_streams.run(bootstrap, directory, ["an executor", "a Python worker"], Random(1), cluster)
    assert kill_streams.numbers(spark, directory) == list(range(sent))


async def produce(bootstrap: str, topic: str) -> None:
    async with Producer(bootstrap, compression_type="lz4") as producer:
        for number in range(COUNT):
            await producer.send(topic, b"%d" % number, b"k%d" % (number % 10))


def output(command: list[str], python: str) -> str:
    """Return the standard output of a command, which may exit with 1 (`verify`); standard error is inherited."""
    finished = subprocess.run(
        command, env=environment(python), cwd=ROOT, stdout=subprocess.PIPE, timeout=A_COMMAND_S, text=True, check=False
    )
    assert finished.returncode in (0, 1), command
    return finished.stdout


def object_in(printed: str) -> dict[str, object]:
    """Return the JSON object in the output of a job under spark-submit, which mixes in standard error."""
    found: dict[str, object] = json.JSONDecoder().raw_decode(printed[printed.index("{") :])[0]
    return found

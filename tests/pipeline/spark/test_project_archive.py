"""Executors whose Python lacks the project read and write with both formats, in a batch and in a stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.peers.java import FOR_SECONDS
from tests.peers.server import Server
from tests.pipeline.bare_python import bare_python
from tests.pipeline.quick_start import PROPERTIES

ROOT = Path(__file__).parents[3]
COUNT = 30

_PROGRAM = f"""
import json, sys
from odradek.pipeline import session

bootstrap, topic, log_dir, scratch = sys.argv[1:]
spark = session(master="local-cluster[1,1,512]", config={PROPERTIES!r} | {{
    "spark.sql.shuffle.partitions": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": {FOR_SECONDS!r},
    "spark.executorEnv.PYTHONPATH": "",
    "spark.python.authenticate.socketTimeout": "300s",  # of a busy machine; the default is 15 s
}})
options = {{"kafka.bootstrap.servers": bootstrap, "topic": topic, "subscribe": topic, "startingOffsets": "earliest"}}
values = spark.range({COUNT}).selectExpr("cast(id as string) as value")
values.write.format("broker").options(**options).mode("append").save()
stream = spark.readStream.format("broker").options(**options).load().writeStream.format("parquet")
stream = stream.option("path", scratch + "/out").option("checkpointLocation", scratch + "/checkpoint")
stream.trigger(availableNow=True).start().awaitTermination()
counts = {{
    "broker": spark.read.format("broker").options(**options).load().count(),
    "klog": spark.read.format("klog").option("subscribe", topic).load(log_dir).count(),
    "stream": spark.read.parquet(scratch + "/out").count(),
}}

def imported(_):
    import odradek
    return [odradek.__file__]

[counts["imported"]] = spark.sparkContext.parallelize([0], 1).mapPartitions(imported).collect()
print(json.dumps(counts))
"""


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["odradek"])
def test_workers_without_the_project_get_it_before_the_formats_are_registered(
    servers: Callable[[str], Server], make_topic: Callable[..., str], tmp_path: Path
) -> None:
    server, topic = servers("odradek"), make_topic(1)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),  # of the driver
        "PYSPARK_PYTHON": bare_python(tmp_path / "python"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [sys.executable, "-c", _PROGRAM, server.bootstrap, topic, str(server.log_dir), str(tmp_path)]
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False
    )
    assert ended.returncode == 0, ended.stderr[-20000:]
    counts = json.loads(ended.stdout.splitlines()[-1])
    assert counts.pop("imported").endswith("odradek.zip/odradek/__init__.py")
    assert counts == {"broker": COUNT, "klog": COUNT, "stream": COUNT}

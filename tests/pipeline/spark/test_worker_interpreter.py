"""Workers on this machine import PySpark as it is installed, and not from Spark's archive."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.spark.worker_interpreter import worker_interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TELL = "import os, sys; print(sys.executable, os.environ['PYTHONPATH'], sys.argv[1:], sep='\\n')"


def test_what_spark_puts_in_front_of_the_path_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    of_spark = ["/s/python/lib/pyspark.zip", "/s/python/lib/py4j-0.10.9.9-src.zip", "/s/jars/spark-core_2.13-4.3.0.jar"]
    told = subprocess.run(
        [worker_interpreter(), "-c", TELL, "an argument", "*"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*of_spark, "/my project", "/other.zip"])},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert told == [sys.executable, "/my project:/other.zip", "['an argument', '*']"]


TELL_MODULE = """
import gc, os, sys
print(os.environ.get('OPENBLAS_NUM_THREADS'), gc.get_threshold()[0], __name__, sys.modules['__main__'].__spec__.name,
      os.path.basename(sys.argv[0]), *sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("module", "threads", "threshold"),
    [("python_streaming_source_runner", "1", "100000"), ("another", "None", str(gc.get_threshold()[0]))],
)
def test_who_is_asked_for_offsets_alone_starts_no_threads_of_numpy_and_collects_little(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, threads: str, threshold: str
) -> None:
    for name in ("SPARK_HOME", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "pyspark" / "sql" / "streaming"
    place.mkdir(parents=True)
    for package in (place, *place.parents[:2]):
        (package / "__init__.py").touch()
    (place / f"{module}.py").write_text(TELL_MODULE)
    told = subprocess.run(
        [worker_interpreter(), "-m", f"pyspark.sql.streaming.{module}", "an argument"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert told == f"{threads} {threshold} __main__ pyspark.sql.streaming.{module} {module}.py an argument\n"


def test_another_spark_keeps_its_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    assert worker_interpreter() == sys.executable


def test_a_temporary_directory_may_forbid_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert worker_interpreter() == sys.executable


@pytest.mark.spark
@pytest.mark.interop
@pytest.mark.timeout(300)
def test_workers_of_a_session_run_installed_modules_and_processes_inherit_nothing(spark: SparkSession) -> None:
    [where] = spark.sparkContext.parallelize([None], 1).map(lambda _: sys.modules["pyspark"].__file__).collect()
    assert where == sys.modules["pyspark"].__file__
    assert os.environ["PYSPARK_PYTHON"] == sys.executable

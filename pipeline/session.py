"""A Spark session made for the pipeline: both formats known to it, and workers that find this project.

```
session() ── under spark-submit ──► what spark-submit was told: master, addresses, jars
          └─ else ───────────────► a local master, bound to loopback, without a web page; workers by Unix sockets
          both ──────────────────► UTC, the Python that runs here for the workers, register()
```

Spark starts a Java machine, and workers as processes of their own that import `pipeline` by name. Here they get the
interpreter and the import path of the process that asks for the session; on a cluster the project must be installed,
or sent along with `--py-files`. PySpark is imported when a session is made, and not before: a command line is answered
without it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import odradek
from odradek.pipeline.spark.worker_interpreter import worker_interpreter
from odradek.pipeline.spark.worker_sockets import socket_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROJECT = Path(odradek.__file__).resolve().parents[1]

_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas")
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",  # timestamps of records are in UTC, whatever the machine's zone is
    "spark.ui.showConsoleProgress": "false",
}
_ON_ONE_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


class RequirementMissingError(Exception):
    """Spark cannot run here: the message says what to install."""


def register(spark: SparkSession) -> None:
    """Make the formats of the pipeline known to a session, and let Spark hand filters down to them."""
    # Here and not above, because each worker imports this package, and then one format alone: that saves it 0.1 s.
    from odradek.pipeline.klog.source import KlogDataSource
    from odradek.pipeline.reading.source import BrokerDataSource

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(BrokerDataSource)
    spark.dataSource.register(KlogDataSource)


def session(
    app_name: str = "odradek",
    *,
    master: str | None = None,
    jars: Sequence[str] = (),
    config: Mapping[str, str] = {},
) -> SparkSession:
    """The session of this process, with the pipeline's formats registered; made if there is none.

    Without a `master` it is spark-submit's, and else all processors of this machine. `jars` are paths; `config` wins
    over everything that is set here. Raises RequirementMissingError before anything is started.
    """
    check_requirements()
    from pyspark.sql import SparkSession

    if not is_submitted():
        _show_workers_the_way()
    settings = dict(_DEFAULTS)
    if master is None and not is_submitted():
        master = "local[*]"
    if master is not None:
        settings["spark.master"] = master
    if master is not None and master.startswith("local"):
        settings |= _ON_ONE_MACHINE | socket_settings()
    if jars:
        settings["spark.jars"] = ",".join(jars)
    builder = SparkSession.builder.appName(app_name)
    for name, value in (settings | dict(config)).items():
        builder = builder.config(name, value)
    with _interpreter_of_workers(on_this_machine=(master or "").startswith("local")):
        spark = builder.getOrCreate()
    register(spark)
    return spark


def check_requirements() -> None:
    """Raise RequirementMissingError unless the packages and, where this process is to start it, a Java are there."""
    check_packages(_PACKAGES)
    if not is_submitted():
        check_java()


def check_packages(names: Sequence[str]) -> None:
    """Raise RequirementMissingError unless all of these packages of the pipeline's are there."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise RequirementMissingError(f"the pipeline needs {', '.join(missing)}: pip install 'odradek[pipeline]'")


def check_java() -> None:
    """Raise RequirementMissingError unless Spark's launcher will find a Java: in JAVA_HOME, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise RequirementMissingError(f"JAVA_HOME is {home}, and there is no bin/java in it")
    if not home and shutil.which("java") is None:
        raise RequirementMissingError(
            "Spark needs Java 17 or newer, and there is none: install openjdk-17-jre-headless, or set JAVA_HOME"
        )


def is_submitted() -> bool:
    """Whether spark-submit has started this process, and Java before it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _show_workers_the_way() -> None:
    """Let workers run this interpreter, and find this project also where it is not installed."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(_PROJECT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(_PROJECT), *filter(None, paths)])


@contextmanager
def _interpreter_of_workers(*, on_this_machine: bool) -> Iterator[None]:
    """While a session is made, name its workers' interpreter, unless somebody has; other processes inherit nothing."""
    if not on_this_machine or os.environ.get("PYSPARK_PYTHON") != sys.executable:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = worker_interpreter()
    try:
        yield
    finally:
        os.environ["PYSPARK_PYTHON"] = sys.executable

"""A Spark session with the pipeline's formats, whose workers can import this project.

```
session() ── under spark-submit ──► master, addresses and jars of spark-submit
          └─ otherwise ──────────► a local master on loopback, without a web page; workers use Unix sockets
          always ────────────────► UTC, this interpreter for the workers, register()

register() ─► another machine's workers get the project (`project_archive`) ─► both formats are registered
```

Spark starts a JVM, and Python workers as separate processes that import `odradek.pipeline` by name. On this machine
workers get the interpreter and the import path of this process. On a cluster they get the project as an archive, unless
spark-submit started this process: it sends what `--py-files` names. PySpark is imported only when a session is created,
so that the command line answers quickly.
"""

from __future__ import annotations

import os
import shutil
import sys
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import odradek
from odradek.pipeline.spark.local_workers import socket_settings, worker_interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROJECT = Path(odradek.__file__).resolve().parents[1]

_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas")
_DEFAULTS = {
    "spark.sql.session.timeZone": "UTC",  # as timestamps of records
    "spark.ui.showConsoleProgress": "false",
    # How long Python processes wait for Java, and Java for them to get a result. Spark's 15 s fail on a busy machine.
    "spark.python.authenticate.socketTimeout": "120s",
}
_ON_ONE_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "odradek.pipeline.spark.worker_daemon",
}

_reporting: weakref.WeakSet[SparkSession] = weakref.WeakSet()
"""The sessions whose streams are reported."""


class RequirementMissingError(Exception):
    """Spark cannot run here; the message names what to install."""


def register(spark: SparkSession) -> None:
    """Register both formats in a session, and allow Spark to push filters down to them.

    Workers on other machines get the project, unless spark-submit started this process.
    """
    # Imported here: every worker imports this package but needs one format only, which saves it 0.1 s.
    from odradek.pipeline.klog.source import KlogDataSource
    from odradek.pipeline.reading.source import BrokerDataSource
    from odradek.pipeline.spark.project_archive import is_remote, send_project

    if is_remote(spark) or not (is_submitted() or _is_local(spark.sparkContext.master)):
        send_project(spark)  # first: a format is registered with the archives that the session has
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(BrokerDataSource)
    spark.dataSource.register(KlogDataSource)


def session(
    app_name: str = "odradek",
    *,
    master: str | None = None,
    jars: Sequence[str] = (),
    config: Mapping[str, str] = {},
    reports: bool = True,
) -> SparkSession:
    """Return the session of this process with the pipeline's formats registered; create it if there is none.

    The default `master` is that of spark-submit, otherwise `local[*]`. `jars` are paths. `config` overrides every
    setting made here. `reports` logs the lag of streams, and their errors in one line (`stream_reports`), and shortens
    the errors that Spark logs (`error_lines`). Raises RequirementMissingError before anything is started.
    """
    check_requirements()
    from pyspark.sql import SparkSession

    if not is_submitted():
        _export_python_environment()
    settings = dict(_DEFAULTS)
    if master is None and not is_submitted():
        master = "local[*]"
    if master is not None:
        settings["spark.master"] = master
    if _is_local(master):
        settings |= _ON_ONE_MACHINE | socket_settings()
    if jars:
        settings["spark.jars"] = ",".join(jars)
    builder = SparkSession.builder.appName(app_name)
    for name, value in (settings | dict(config)).items():
        builder = builder.config(name, value)
    with _interpreter_of_workers(on_this_machine=_is_local(master)):
        spark = builder.getOrCreate()
    register(spark)
    if reports and spark not in _reporting:
        from odradek.pipeline.spark.error_lines import shorten_errors
        from odradek.pipeline.spark.stream_reports import report_streams, silence_spark

        _reporting.add(spark)
        shorten_errors(spark)
        report_streams(spark)
        silence_spark(spark)
    return spark


def check_requirements() -> None:
    """Raise RequirementMissingError unless the packages are installed and, where this process starts Java, a Java."""
    check_packages(_PACKAGES)
    if not is_submitted():
        check_java()


def check_packages(names: Sequence[str]) -> None:
    """Raise RequirementMissingError unless all of these packages of the pipeline are installed."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise RequirementMissingError(f"the pipeline needs {', '.join(missing)}: pip install 'odradek[pipeline]'")


def check_java() -> None:
    """Raise RequirementMissingError unless Spark's launcher will find Java: in JAVA_HOME, otherwise on the PATH."""
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").exists():
        raise RequirementMissingError(f"JAVA_HOME is {home}, which contains no bin/java")
    if not home and shutil.which("java") is None:
        raise RequirementMissingError(
            "Spark needs Java 17 or newer, and none was found: install openjdk-17-jre-headless, or set JAVA_HOME"
        )


def _is_local(master: str | None) -> bool:
    """Whether this master's workers run on this machine, in the environment of this process."""
    return master is not None and (master == "local" or master.startswith("local["))


def is_submitted() -> bool:
    """Whether spark-submit started this process; then Java runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _export_python_environment() -> None:
    """Set PYSPARK_PYTHON and PYTHONPATH, so that workers run this interpreter and import this project."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(_PROJECT) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*filter(None, paths), str(_PROJECT)])


@contextmanager
def _interpreter_of_workers(*, on_this_machine: bool) -> Iterator[None]:
    """Set PYSPARK_PYTHON while a session is created, unless the user set it; restore it for other processes."""
    if not on_this_machine or os.environ.get("PYSPARK_PYTHON") != sys.executable:
        yield
        return
    os.environ["PYSPARK_PYTHON"] = worker_interpreter()
    try:
        yield
    finally:
        os.environ["PYSPARK_PYTHON"] = sys.executable

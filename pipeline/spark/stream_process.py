"""PySpark's process that requests the offsets of a stream, which connects to Java before it imports PySpark.

Java waits 10 s for the connection; no setting changes that (`PythonWorkerFactory.createSimpleWorker`). PySpark's module
connects after its imports, which take longer on a busy machine, and the query then fails: "Python worker failed to
connect back". When the connection is there, Java waits as long as the imports take.

In sessions on this machine the workers' interpreter (`local_workers`) starts it in place of PySpark's module.
"""

from __future__ import annotations

import os
import runpy
import socket
from typing import Any

MODULE = "pyspark.sql.streaming.python_streaming_source_runner"

_PATH = "PYTHON_WORKER_FACTORY_SOCK_PATH"


def run() -> None:
    """Run PySpark's module as the main program; with TCP it connects by itself, as it does without this module."""
    path = os.environ.get(_PATH)
    if path is not None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)

        def connected(conn_info: str | int | None, auth_secret: str | None) -> tuple[Any, ...]:  # noqa: ARG001
            return connection.makefile("rwb", int(os.environ.get("SPARK_BUFFER_SIZE", "65536"))), connection

        from pyspark import util

        util.local_connect_and_auth = connected
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    run()

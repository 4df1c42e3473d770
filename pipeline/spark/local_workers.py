"""Python workers on the driver's machine: the interpreter that they run, and their Unix sockets to Java.

Both are files in a directory that only this user may enter. It is removed when this process ends.

The interpreter is a shell script of a few lines. It starts `worker_daemon` in place of PySpark's daemon, also for the
workers that plan queries: Spark's setting for the daemon applies to tasks only. It starts `stream_process` in place of
PySpark's module for the offsets of a stream. And Spark puts its own archives first
on the workers' import path, some of them twice. The script removes them, so that workers import the installed PySpark:

```
PYTHONPATH that Spark sets      pyspark.zip : py4j-….zip : spark-core_….jar : the driver's PYTHONPATH
PYTHONPATH behind the script                                                  the driver's PYTHONPATH
```
The archives contain no bytecode, so every Python process compiles PySpark again, and Spark starts one for each
streaming query. The Python processes of a stream's start take 0.8 s of processor time with the script and 2.2 s without
it; those of a session's first batch query 2.7 s and 7.4 s (medians, a busy machine).

Unix sockets replace TCP over loopback. TCP costs more processor time a byte, and delays small writes: when one side
writes twice and then waits, Nagle's algorithm and delayed acknowledgements add 40 ms. Spark has these sockets since 4.1
and leaves them off; they have no password, hence the private directory. Source: SPARK-51688.
"""

from __future__ import annotations

import functools
import os
import shlex
import socket
import sys
import sysconfig
import tempfile
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_SCRIPT: Final = """#!/bin/sh
case "$1 $2" in
"-m pyspark.daemon") module=worker_daemon ;;
"-m pyspark.sql.streaming.python_streaming_source_runner") module=stream_process ;;
*) module= ;;
esac
if [ "$module" ]; then shift 2; set -- -m "odradek.pipeline.spark.$module" "$@"; fi
PYTHONPATH="${{PYTHONPATH##*/spark-core_*.jar:}}" exec {interpreter} "$@"
"""
_MAX_SOCKET_PATH_BYTES: Final = 103  # on macOS; Linux allows four more


def worker_interpreter() -> str:
    """Return the program that workers on this machine run: the script, or this interpreter where it does not apply."""
    if "SPARK_HOME" in os.environ or not _is_in_site_packages("pyspark"):
        return sys.executable
    script = _script(sys.executable)
    return script if os.access(script, os.X_OK) else sys.executable  # the file system may be mounted with noexec


def socket_settings() -> dict[str, str]:
    """Return the Spark settings that turn Unix sockets on; none where the system lacks them or the path is too long."""
    directory = str(_directory())
    longest = len(os.fsencode(os.path.join(directory, f".{uuid.UUID(int=0)}.sock")))  # noqa: PTH118 - as Spark does
    if not hasattr(socket, "AF_UNIX") or longest > _MAX_SOCKET_PATH_BYTES:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": directory}


def _is_in_site_packages(package: str) -> bool:
    """Whether a worker imports the package that this process imports, without Spark's archives."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).parents[1] == Path(sysconfig.get_path("purelib"))


@functools.cache
def _script(interpreter: str) -> str:
    script = _directory() / "python"
    script.write_text(_SCRIPT.format(interpreter=shlex.quote(interpreter)))
    script.chmod(0o700)
    return str(script)


def _directory() -> Path:
    return Path(_temporary_directory().name)


@functools.cache
def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="odradek-workers-", ignore_cleanup_errors=True)

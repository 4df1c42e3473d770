"""The interpreter that Spark starts on this machine, with the installed PySpark instead of the archive in front of it.

```
PYTHONPATH as Spark sets it     pyspark.zip : py4j-….zip : spark-core_….jar : what the driver has
PYTHONPATH of the interpreter                                                what the driver has
```
An archive holds no bytecode, so each interpreter that imports PySpark from one compiles it again. That is 0.5 s of a
processor for every query over a Python stream, which gets an interpreter of its own, and for every first query of a
kind. PySpark as pip installs it is the same, compiled. Where the driver did not find it in its own site-packages, and
on other machines, Spark's way stays.

The process that a stream asks for its offsets calculates nothing. So it does not start numpy's threads, which would
begin by waiting busily: 0.1 s of a processor. Nor does it collect garbage as often as Python would while it imports
PySpark: 0.02 of 0.19 s.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from odradek.pipeline.spark.session_directory import session_directory

_RUNNER: Final = (
    "import gc, runpy; gc.set_threshold(100000); "
    "runpy.run_module('pyspark.sql.streaming.python_streaming_source_runner', run_name='__main__', alter_sys=True)"
)
# A shell and not Python, because it costs 1 ms. Spark names the program, and leaves no place for arguments of ours.
_SCRIPT: Final = """#!/bin/sh
set -f
path=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */pyspark.zip | */py4j-*-src.zip | */spark-core_*.jar) ;;
        *) path=$path${{path:+:}}$entry ;;
    esac
done
export PYTHONPATH="$path"
case $2 in
    pyspark.sql.streaming.python_streaming_source_runner)
        export OPENBLAS_NUM_THREADS="${{OPENBLAS_NUM_THREADS:-1}}"
        shift 2
        exec {interpreter} -c "{runner}" "$@" ;;
esac
exec {interpreter} "$@"
"""


def worker_interpreter() -> str:
    """The path of the program that workers on this machine are to run: a script before this interpreter, or itself."""
    if "SPARK_HOME" in os.environ or not all(map(_is_in_site_packages, ("pyspark", "py4j"))):
        return sys.executable
    script = _script(sys.executable)
    return script if os.access(script, os.X_OK) else sys.executable  # a temporary directory may forbid programs


def _is_in_site_packages(package: str) -> bool:
    """Whether a worker finds the package without being told, and finds the one that this process has."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).parents[1] == Path(sysconfig.get_path("purelib"))


@functools.cache
def _script(interpreter: str) -> str:
    script = session_directory() / "python"
    script.write_text(_SCRIPT.format(interpreter=shlex.quote(interpreter), runner=_RUNNER))
    script.chmod(0o700)
    return str(script)

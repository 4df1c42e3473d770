"""The project as an archive of Python modules, and sending it to workers that lack the project.

```
session on a cluster ─► odradek.zip ─► Spark serves it ─► each executor fetches it before its first task
```
A data source is registered with the archives that the session has at that moment, so the archive is sent first. It
contains our packages only. Their dependencies (pyarrow, numpy, msgspec, the codecs) have parts in C and must be
installed on the workers: with `pip install 'odradek[pipeline]'`, or as an archive of an environment with `--archives`.
"""

from __future__ import annotations

import functools
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import odradek

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("pipeline", "protocol", "client", "broker")
"""The packages of `odradek`; in a checkout they are links, which `rglob` does not follow."""

_NAME: Final = "odradek.zip"


def write_archive(archive: Path) -> int:
    """Write the archive; return the number of its modules. Its import paths are those of the packages here."""
    package = Path(odradek.__file__).parent
    modules = sorted([*package.glob("*.py"), *(path for name in PACKAGES for path in (package / name).rglob("*.py"))])
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in modules:
            packed.write(path, path.relative_to(package.parent))
    return len(modules)


def is_remote(spark: SparkSession) -> bool:
    """Whether this is a session of Spark Connect, whose driver is another process, mostly on another machine."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def send_project(spark: SparkSession) -> None:
    """Send the archive to the session's workers, once; with Spark Connect to its driver, too."""
    if is_remote(spark):
        spark.addArtifacts(str(_archive()), pyfile=True)
        return
    context = spark.sparkContext
    if not any(url.endswith(f"/{_NAME}") for url in context.listFiles):
        context.addPyFile(str(_archive()))


@functools.cache
def _archive() -> Path:
    archive = Path(_directory().name) / _NAME
    write_archive(archive)
    return archive


@functools.cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """A directory that exists until this process ends: executors that start later fetch the archive, too."""
    return tempfile.TemporaryDirectory(prefix="odradek-project-", ignore_cleanup_errors=True)

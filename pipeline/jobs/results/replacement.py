"""The replacement of a job's result: the earlier one stays until the new one is complete.

```
OUTPUT/…                    the result, with `_odradek.json` (an export: `_checkpoint/export.json`)
_OUTPUT.staging/            exists while a job replaces the result, with `_odradek.json`, which is written first
_OUTPUT.staging/new         the new result of `compact` or `restore`, while it is written
_OUTPUT.staging/old         the earlier result, once the new one is complete
_OUTPUT.staging/before      the earlier result of an `export --overwrite` that has not ended
```
`compact` and `restore` write beside the earlier result, then swap by two renames. `export --overwrite` writes to its
place, because the lists of Spark's file sink contain absolute paths: the earlier result is moved aside before, and back
if the job fails. After a kill the next job on the same directory (`recover`) completes a swap that has begun, and
otherwise puts the earlier result back. A second job on the same directory at the same time is refused (`output_lock`).

Both need atomic renames of directories. Without these (object stores, a mount point as OUTPUT) a result is written to
its place, and `--overwrite` is refused.

A directory is deleted only if it has one of the two files above, which show that a job wrote it, and if every other
file in it is one that a job writes. So a log directory never is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.results.filesystem import FileSystem
from odradek.pipeline.jobs.results.output_lock import locked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MARKER: Final = "_odradek.json"
EXPORT_SETTINGS: Final = "_checkpoint/export.json"

_OURS: Final = {MARKER, "_checkpoint", "_staging", "_spark_metadata", "_delta_log", "_temporary", "_SUCCESS"}
_NEW: Final = "new"
_OLD: Final = "old"
_BEFORE: Final = "before"


@contextmanager
def new_result(spark: SparkSession, directory: str, job: str, *, overwrite: bool) -> Iterator[str]:
    """Yield the directory to write to, which becomes `directory` at the end of the `with`.

    If the `with` fails, `directory` stays as it was. Raises `JobError` if it has files and may not be replaced, or if
    another job writes to it.
    """
    place = _Place(spark, directory)
    with place.locked():
        place.recover()
        place.check_replaceable(overwrite=overwrite)
        if not place.can_swap:
            yield directory
            place.write_marker(job)
            return
        place.create_staging()
        try:
            yield place.path_of(_NEW)
            place.write_marker(job)
            place.swap()
        finally:
            place.recover()


@contextmanager
def put_aside(spark: SparkSession, directory: str, *, overwrite: bool) -> Iterator[None]:
    """Move an earlier export aside if `overwrite`; delete it at the end of the `with`, or put it back if that fails.

    Raises `JobError` if the directory may not be replaced, or if another job writes to it.
    """
    place = _Place(spark, directory)
    with place.locked():
        place.recover()
        if not overwrite or place.is_empty():
            yield
            return
        place.check_replaceable(overwrite=True)
        place.create_staging()
        try:
            place.move_aside()
            yield
            place.discard_earlier()
        finally:
            place.recover()


class _Place:
    """A directory of a result, and the staging directory beside it."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._directory = directory
        files = self._output = FileSystem(spark, directory)
        parent, self._name = files.parent()
        self.can_swap = bool(self._name) and files.renames_atomically()
        self._files = FileSystem(spark, parent) if self._name else files
        self._staging = f"_{self._name}.staging"

    def locked(self) -> AbstractContextManager[None]:
        """Lock the directory if it is of this machine. Raises `JobError` if another job has locked it."""
        path = self._output.local_path()
        return nullcontext() if path is None else locked(path)

    def path_of(self, part: str) -> str:
        return f"{self._files.directory}/{self._staging}/{part}"

    def is_empty(self) -> bool:
        return not self._files.names(self._name)

    def check_replaceable(self, *, overwrite: bool) -> None:
        """Raise `JobError` if there are files that may not be replaced."""
        if self.is_empty():
            return
        if not overwrite:
            raise JobError(f"{self._directory} exists; --overwrite replaces it")
        if not any(self._files.exists(f"{self._name}/{path}") for path in (MARKER, EXPORT_SETTINGS)):
            raise JobError(
                f"{self._directory} is not the result of a job: it has neither {MARKER} nor {EXPORT_SETTINGS}. "
                "--overwrite does not delete it"
            )
        if not self.can_swap:
            raise JobError(
                f"{self._directory} cannot be replaced in one step, because it is in an object store or a mount point: "
                "name another directory, or delete it"
            )
        self._check_all_ours()

    def create_staging(self) -> None:
        self._files.write(f"{self._staging}/{MARKER}", json.dumps({"replaces": self._directory}))

    def write_marker(self, job: str) -> None:
        """Mark the new result, which is complete."""
        written = f"{self._staging}/{_NEW}" if self.can_swap else self._name
        self._files.write(f"{written}/{MARKER}", json.dumps({"job": job}))

    def swap(self) -> None:
        """Put the new result, which is complete, in the place of the earlier one."""
        if self.is_empty():
            self._files.delete(self._name)
        else:
            self._files.move(self._name, f"{self._staging}/{_OLD}")
        self._files.move(f"{self._staging}/{_NEW}", self._name)

    def move_aside(self) -> None:
        self._files.move(self._name, f"{self._staging}/{_BEFORE}")

    def discard_earlier(self) -> None:
        self._files.move(f"{self._staging}/{_BEFORE}", f"{self._staging}/{_OLD}")

    def recover(self) -> None:
        """Complete or undo what a job has begun, and delete the staging directory. Raises `JobError`."""
        staging = set(self._files.names(self._staging))
        if staging - {f"{MARKER}.tmp"} and MARKER not in staging:
            raise JobError(f"{self._files.directory}/{self._staging} is not of a job: move it to another place")
        if _BEFORE in staging:
            self._check_all_ours()
            self._files.delete(self._name)
            self._files.move(f"{self._staging}/{_BEFORE}", self._name)
        elif _OLD in staging and not self._files.exists(self._name):
            self._files.move(f"{self._staging}/{_NEW}", self._name)
        for part in (_NEW, _OLD, ""):  # the marker last
            self._files.delete(f"{self._staging}/{part}".rstrip("/"))

    def _check_all_ours(self) -> None:
        for path in self._files.files(self._name):
            if path.partition("/")[0] not in _OURS and not path.endswith(".parquet"):
                raise JobError(f"no job wrote {self._directory}/{path}, so {self._directory} is not deleted")

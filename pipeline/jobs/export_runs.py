"""Export a log directory in runs: each run has its range of offsets, and its files count all or not at all.

```
_staging/N/…             the files of run N, which readers ignore
_checkpoint/commits/N    the commit: all files are written; with the range, topic ids and cluster of the run
OUTPUT/…                 the files move here after the commit
```
A run that was interrupted before its commit is repeated from its start. The files of a run that was interrupted after
its commit are moved by the next run; file names are unique, so moving can be repeated. Each record is therefore
exported once. Readers see the files of a run appear one by one while they are moved.

A run begins where the last one ended (`log_directories.continuation`). If the log does not fit that, records are lost:
that is an error, unless `--on-data-loss=continue` is given.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.log_directories.continuation import Checkpoint, next_checkpoint
from odradek.pipeline.jobs.partition_columns import with_partition_columns
from odradek.pipeline.jobs.source import read_partitions
from odradek.pipeline.options.bounds import offsets_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.log_directories.log_offsets import LogState
    from odradek.pipeline.jobs.results.filesystem import FileSystem

_COMMITS = "_checkpoint/commits"
_STAGING = "_staging"
_SHOWN = 5  # losses in an error


def export_log_dir(
    spark: SparkSession, arguments: argparse.Namespace, files: FileSystem, columns: dict[str, str]
) -> dict[str, object]:
    """Export the new records of `--log-dir`, and return counts. `columns` as for `with_partition_columns`."""
    from odradek.pipeline.jobs.log_directories.log_offsets import read_log_state
    from odradek.pipeline.jobs.results.counting import counted

    move_committed(files)
    log = read_log_state(arguments)
    accepts_loss = arguments.on_data_loss == "continue"
    run = ExportRun(files, log, accepts_loss=accepts_loss)
    found: dict[str, object] = {"records": 0, "files": 0}
    if run.has_records:
        options = {
            "startingOffsets": offsets_json(run.range.starts),
            "endingOffsets": offsets_json({key: run.range.ends[key] for key in run.range.starts}),
            "failOnDataLoss": str(not accepts_loss).lower(),
        }
        records = read_partitions(spark, arguments, run.range.starts, options)
        records, counts = counted(with_partition_columns(records, columns))
        writer = records.write.partitionBy(*columns) if columns else records.write
        writer.mode("overwrite").parquet(f"{files.directory}/{run.staging}")
        found.update(counts())
        found["files"] = sum(1 for path in files.files(run.staging) if path.endswith(".parquet"))
        if read_log_state(arguments).topic_ids != log.topic_ids:
            raise JobError("a topic was deleted or created while the job was reading: run it again")
    if run.has_records or run.losses:
        run.commit()
        move_committed(files)
    return found


class ExportRun:
    """The next run, from the end of the last one to the end of the log; `losses` are sentences about what is lost.

    Raises `JobError` for losses, unless `accepts_loss`.
    """

    def __init__(self, files: FileSystem, log: LogState, *, accepts_loss: bool = False) -> None:
        self._files = files
        done = committed_runs(files)
        self._number = done[-1] + 1 if done else 0
        self.staging = f"{_STAGING}/{self._number}"
        last = _read_checkpoint(files, f"{_COMMITS}/{done[-1]}") if done else None
        self.range, self.losses = next_checkpoint(last, log)
        if self.losses and not accepts_loss:
            others = len(self.losses) - _SHOWN
            texts = [*self.losses[:_SHOWN], *([f"and {others} more"] if others > 0 else [])]
            raise JobError(f"{'; '.join(texts)}. --on-data-loss=continue exports the records that there are")
        files.delete(self.staging)

    @property
    def has_records(self) -> bool:
        return any(self.range.ends[key] > start for key, start in self.range.starts.items())

    def commit(self) -> None:
        self._files.write(f"{_COMMITS}/{self._number}", self.range.to_json())


def _read_checkpoint(files: FileSystem, path: str) -> Checkpoint:
    """Return the checkpoint of a commit. Raises `JobError`, as for those of earlier versions, which are empty."""
    try:
        return Checkpoint.from_json(files.read(path))
    except (ValueError, KeyError, TypeError) as error:
        raise JobError(
            f"{files.directory}/{path} is not the commit of an export: --overwrite exports everything again"
        ) from error


def committed_runs(files: FileSystem) -> list[int]:
    """Return the numbers of the committed runs, in order. A kill may have left `N.tmp`, which is no commit."""
    return sorted(int(name) for name in files.names(_COMMITS) if name.isdecimal())


def move_committed(files: FileSystem) -> None:
    """Move the files of committed runs into the output directory."""
    for number in committed_runs(files):
        staging = f"{_STAGING}/{number}"
        for path in files.files(staging):
            if path.endswith(".parquet"):
                files.move(f"{staging}/{path}", path)
        files.delete(staging)

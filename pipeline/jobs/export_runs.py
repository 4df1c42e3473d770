"""Export a log directory in runs: each run has its range of offsets, and its files count all or not at all.

```
_checkpoint/runs/N       the start and end offsets of run N, written before anything is read
_staging/N/…             its files, which readers ignore
_checkpoint/commits/N    the commit: all files are written
OUTPUT/…                 the files move here after the commit
```
A run that was interrupted before its commit is repeated with the same offsets, from the start. The files of a run that
was interrupted after its commit are moved by the next run; file names are unique, so moving can be repeated. Each
record is therefore exported once. Readers see the files of a run appear one by one while they are moved.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from odradek.pipeline.jobs.partition_columns import with_partition_columns
from odradek.pipeline.jobs.source import read_records
from odradek.pipeline.options.bounds import Numbers, offsets_from_json, offsets_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.results.filesystem import FileSystem

_RUNS = "_checkpoint/runs"
_COMMITS = "_checkpoint/commits"
_STAGING = "_staging"


def export_log_dir(
    spark: SparkSession, arguments: argparse.Namespace, files: FileSystem, columns: dict[str, str]
) -> dict[str, object]:
    """Export the new records of `--log-dir`, and return counts. `columns` as for `with_partition_columns`."""
    from odradek.pipeline.jobs.log_directories.log_offsets import log_ranges
    from odradek.pipeline.jobs.results.counting import counted

    move_committed(files)
    ranges = log_ranges(arguments)
    run = ExportRun(files, ranges.starts, ranges.ends)
    if not run.has_records:
        return {"records": 0, "files": 0}
    bounds = {"startingOffsets": offsets_json(run.starts), "endingOffsets": offsets_json(run.ends)}
    records = with_partition_columns(read_records(spark, arguments, bounds), columns)
    records, counts = counted(records)
    writer = records.write.partitionBy(*columns) if columns else records.write
    writer.mode("overwrite").parquet(f"{files.directory}/{run.staging}")
    found: dict[str, object] = dict(counts())
    found["files"] = sum(1 for path in files.files(run.staging) if path.endswith(".parquet"))
    run.commit()
    move_committed(files)
    return found


class ExportRun:
    """The current run: the interrupted one, or the next, from the end of the last run to the end of the log."""

    def __init__(self, files: FileSystem, log_starts: Numbers, log_ends: Numbers) -> None:
        self._files = files
        done = sorted(int(name) for name in files.names(_COMMITS))
        self._number = done[-1] + 1 if done else 0
        self.staging = f"{_STAGING}/{self._number}"
        planned = f"{_RUNS}/{self._number}"
        if files.exists(planned):
            plan = json.loads(files.read(planned))
            self.starts, ends = offsets_from_json(plan["start"]), offsets_from_json(plan["end"])
            self.ends = {key: ends[key] for key in self.starts}
            files.delete(self.staging)
            return
        last = json.loads(files.read(f"{_RUNS}/{done[-1]}"))["end"] if done else "{}"
        known = offsets_from_json(last)
        self.starts = {key: max(start, known.get(key, start)) for key, start in log_starts.items()}
        self.ends = {key: max(log_ends[key], self.starts[key]) for key in self.starts}
        if self.has_records:
            reached = {**known, **self.ends}  # a missing partition may come back
            files.write(planned, json.dumps({"start": offsets_json(self.starts), "end": offsets_json(reached)}))

    @property
    def has_records(self) -> bool:
        return any(self.ends[key] > start for key, start in self.starts.items())

    def commit(self) -> None:
        self._files.write(f"{_COMMITS}/{self._number}", "")


def move_committed(files: FileSystem) -> None:
    """Move the files of committed runs into the output directory."""
    committed = set(files.names(_COMMITS))
    for number in files.names(_STAGING):
        if number not in committed:
            continue
        staging = f"{_STAGING}/{number}"
        for path in files.files(staging):
            if path.endswith(".parquet"):
                files.move(f"{staging}/{path}", path)
        files.delete(staging)

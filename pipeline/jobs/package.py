"""`package`: write the project as one archive, which spark-submit sends to every worker (`spark.project_archive`)."""

from __future__ import annotations

import argparse
from pathlib import Path

from odradek.protocol.plural import pluralize


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", metavar="FILE.zip", type=Path, help="the archive to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs import JobError
    from odradek.pipeline.jobs.results.summary import print_status
    from odradek.pipeline.spark.project_archive import write_archive

    if arguments.archive.exists() and not arguments.overwrite:
        raise JobError(f"{arguments.archive} exists; --overwrite replaces it")
    count = write_archive(arguments.archive)
    print_status(f"{arguments.archive}: {pluralize(count, 'module')}")
    return 0

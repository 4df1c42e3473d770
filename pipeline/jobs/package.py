"""`package`: the project as one archive, which spark-submit hands to every worker.

It holds our packages alone. What they import (pyarrow, numpy, msgspec, the codecs) has parts in C, and is installed on
the workers: `pip install 'odradek[pipeline]'` there, or an archive of a whole environment by `--archives`.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import odradek

PACKAGES = ("pipeline", "protocol", "client", "broker")
"""The packages of `odradek`: in a checkout they are links, which a walk over the directory would not follow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", metavar="FILE.zip", type=Path, help="the archive to write")
    parser.add_argument("--overwrite", action="store_true", help="replace the file that is there")


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs import JobError
    from odradek.pipeline.jobs.results.summary import say

    if arguments.archive.exists() and not arguments.overwrite:
        raise JobError(f"{arguments.archive} exists; --overwrite replaces it")
    count = write_package(arguments.archive)
    say(f"{arguments.archive}: {count} modules")
    return 0


def write_package(archive: Path) -> int:
    """Write the archive, and return how many modules are in it. It imports as the packages do here."""
    package = Path(odradek.__file__).parent
    modules = sorted([*package.glob("*.py"), *(path for name in PACKAGES for path in (package / name).rglob("*.py"))])
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in modules:
            packed.write(path, path.relative_to(package.parent))
    return len(modules)

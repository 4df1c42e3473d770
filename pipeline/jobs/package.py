"""`package`: write the project as one archive, which spark-submit sends to every worker.

It contains our packages only. Their dependencies (pyarrow, numpy, msgspec, the codecs) have parts in C and must be
installed on the workers: with `pip install 'odradek[pipeline]'`, or as an archive of an environment with `--archives`.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import odradek

PACKAGES = ("pipeline", "protocol", "client", "broker")
"""The packages of `odradek`; in a checkout they are links, which `rglob` does not follow."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("archive", metavar="FILE.zip", type=Path, help="the archive to write")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def run(arguments: argparse.Namespace) -> int:
    from odradek.pipeline.jobs import JobError
    from odradek.pipeline.jobs.results.summary import print_status

    if arguments.archive.exists() and not arguments.overwrite:
        raise JobError(f"{arguments.archive} exists; --overwrite replaces it")
    count = write_package(arguments.archive)
    print_status(f"{arguments.archive}: {count} modules")
    return 0


def write_package(archive: Path) -> int:
    """Write the archive; return the number of its modules. Its import paths are those of the packages here."""
    package = Path(odradek.__file__).parent
    modules = sorted([*package.glob("*.py"), *(path for name in PACKAGES for path in (package / name).rglob("*.py"))])
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in modules:
            packed.write(path, path.relative_to(package.parent))
    return len(modules)

"""The examples that need an environment or a process of their own. pytest finds the others by itself."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.peers import environments
from tests.peers.availability import unavailable
from tests.wheels import REPOSITORY, run_in_group

EXAMPLES = Path(__file__).parent / "examples"


def run(interpreter: str | Path, example: str) -> None:
    """Run a file of the examples as the suite of a user, from a copy of this repository's packages."""
    command = [
        str(interpreter),
        "-m",
        "pytest",
        "-p",
        "odradek.testing.plugin",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    done = run_in_group(
        [*command, "--rootdir", str(EXAMPLES), "--confcutdir", str(EXAMPLES), str(EXAMPLES / example)],
        timeout=240, cwd=EXAMPLES, env=environment | {"PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert " passed" in done.stdout.splitlines()[-1]


@pytest.mark.interop
@pytest.mark.timeout(900)  # the environment is made first
def test_quix_streams() -> None:
    run(environments.python(environments.QUIX_STREAMS), "quix_streams.py")


@pytest.mark.spark
def test_spark() -> None:
    if shutil.which("java") is None:
        unavailable("there is no Java")
    run(sys.executable, "spark_tables.py")

"""Wheels of this project for tests: built from a copy of the tracked files, installed into a directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.peers.availability import unavailable

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("protocol", "broker", "client", "pipeline")
BUILT_BY = ("pyproject.toml", "setup.py", "build_backend.py", "MANIFEST.in", "tests/smoke/")


def build(tmp_path_factory: pytest.TempPathFactory, source: Path | None = None, **environment: str) -> zipfile.ZipFile:
    """Build a wheel of a source distribution or a directory; of a copy of this repository if there is none."""
    directory = tmp_path_factory.mktemp("wheel")
    source = source or copy_of_the_source(tmp_path_factory)
    pip(*("wheel", "--no-deps", "--wheel-dir", str(directory), str(source)), environment=environment)
    return zipfile.ZipFile(next(directory.glob("*.whl")))


def build_source_distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sdist")
    source = copy_of_the_source(tmp_path_factory)
    done = run_in_group(
        [sys.executable, "-m", "build", "--sdist", "--outdir", str(directory), str(source)], timeout=300
    )
    if done.returncode:
        unavailable(f"no source distribution was built: {done.stderr.strip()[-1000:]}")
    return next(directory.glob("*.tar.gz"))


def copy_of_the_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the files that a build needs, because a build leaves files in its source."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    source = tmp_path_factory.mktemp("source")
    for name in filter(None, listed.split("\0")):
        if name.startswith(("odradek/", *(f"{package}/" for package in PACKAGES), *BUILT_BY, "README", "LICENSE")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, source / name, follow_symlinks=False)
    return source


def pip(*arguments: str, environment: dict[str, str], python: str = sys.executable) -> str:
    """Run pip and return its output. It may fetch the requirements of a build.

    It sees no PYTHONPATH: the Spark session of an earlier test sets it to this checkout, which pip then takes for an
    installed odradek, so that it installs none.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in ("ODRADEK_COMPILE", "PYTHONPATH")}
    done = run_in_group([python, "-m", "pip", *arguments], timeout=600, env=inherited | environment)
    if done.returncode:
        unavailable(f"pip failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def run_in_group(command: Sequence[str], *, timeout: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command, and return its output. At a timeout kill its child processes too, such as compilers."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, **options
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def run(directory: Path, *command: str) -> str:
    """Return the output of a command that imports from `directory`."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=directory,
        env={"PYTHONPATH": str(directory)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(wheel: zipfile.ZipFile, target: Path) -> None:
    pip("install", "--quiet", "--no-deps", "--no-index", "--target", str(target), str(wheel.filename), environment={})

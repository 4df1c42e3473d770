"""The platforms and versions of Python for which wheels are built, and what the project declares about itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
VERSIONS = {"3.11", "3.12", "3.13", "3.14"}


def pyproject() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_the_project_declares_the_versions_for_which_there_are_wheels() -> None:
    classifiers = pyproject()["project"]["classifiers"]
    declared = {found[1] for each in classifiers if (found := re.fullmatch(r"Programming .* :: (3\.\d+)", each))}
    assert declared == VERSIONS
    assert pyproject()["project"]["requires-python"] == f">={min(VERSIONS, key=lambda each: int(each[2:]))}"
    assert "Operating System :: OS Independent" not in classifiers


@pytest.mark.process
@pytest.mark.parametrize(
    ("system", "platforms"),
    [
        ("linux", {f"{libc}_{cpu}" for libc in ("manylinux", "musllinux") for cpu in ("x86_64", "aarch64")}),
        ("macos", {"macosx_x86_64", "macosx_arm64"}),
    ],
)
def test_there_is_a_wheel_for_every_version_platform_and_processor(system: str, platforms: set[str]) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "cibuildwheel", "--platform", system, "--print-build-identifiers", "."],
        capture_output=True, text=True, timeout=60, check=True, cwd=REPOSITORY,
    ).stdout.split()  # fmt: skip
    assert sorted(printed) == sorted(
        f"cp{version.replace('.', '')}-{platform}" for version in VERSIONS for platform in platforms
    )


def test_pip_on_windows_leaves_out_the_one_requirement_that_has_no_wheel_there() -> None:
    """The sentence about Windows can be printed only by an installed package."""
    [uvloop] = [each for each in pyproject()["project"]["dependencies"] if each.startswith("uvloop")]
    assert uvloop.endswith("; sys_platform != 'win32'")


def test_cibuildwheel_tests_with_files_that_exist() -> None:
    settings = pyproject()["tool"]["cibuildwheel"]
    assert all((REPOSITORY / each).exists() for each in settings["test-sources"])
    assert (REPOSITORY / settings["test-command"].split()[-1]).is_file()

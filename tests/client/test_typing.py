"""The types of the public API: mypy --strict accepts one user's program and finds the mistakes in another."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from odradek import client

HERE = Path(__file__).parent / "typed"
ROOT = Path(__file__).resolve().parents[2]


def errors_of(program: Path, cache: Path) -> dict[int, str]:
    """The kind of error that mypy finds on each line."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--cache-dir"]
    command += [str(cache), "--disable-error-code=import-untyped", str(program)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert printed.returncode in (0, 1), printed.stderr
    found = re.findall(r"^(\S+?):(\d+): error: .*\[([\w-]+)\]$", printed.stdout, re.MULTILINE)
    assert all(Path(path).name == program.name for path, _, _ in found), printed.stdout
    return {int(line): kind for _, line, kind in found}


@pytest.mark.process
def test_mypy_accepts_a_users_program_and_finds_mistakes(tmp_path: Path) -> None:
    assert errors_of(HERE / "user_program.py", tmp_path) == {}
    marked = {
        number: found[1]
        for number, line in enumerate((HERE / "user_mistakes.py").read_text().splitlines(), 1)
        if (found := re.search(r"# error: ([\w-]+)", line))
    }
    assert errors_of(HERE / "user_mistakes.py", tmp_path) == marked


def test_the_package_is_marked_as_typed() -> None:
    assert client.__file__ is not None
    assert (Path(client.__file__).parent / "py.typed").exists()


def test_only_public_names_can_be_imported() -> None:
    for name in client.__all__:
        assert getattr(client, name) is not None
    assert not hasattr(client, "no_such_name")

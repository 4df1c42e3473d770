"""The first minute of a newcomer: the commands of the README."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.availability import program

README = Path(__file__).parents[2] / "README.md"


def blocks(language: str, bootstrap: str) -> list[str]:
    """The code blocks of a language under the first heading, with this server's address and this Python."""
    section = README.read_text().partition("\n## A message in 60 seconds\n")[2].partition("\n## ")[0]
    found = re.findall(rf"^```{language}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return [
        block.replace("localhost:9092", bootstrap).replace(".venv/bin/odradek", f"{sys.executable} -m odradek")
        for block in found
        if "make run" not in block
    ]


def shell(text: str) -> str:
    done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def _kcat() -> None:
    program("kcat", "kcat")


def test_the_commands_and_the_script_of_the_first_minute_work(bootstrap: str) -> None:
    ours, kcat = blocks("sh", bootstrap)
    [script] = blocks("python", bootstrap)
    assert shell(ours) == "hello\n"
    assert shell(kcat) == "hello\nhello from kcat\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 b'hello'\n1 b'hello from kcat'\n2 b'hello from librdkafka'\n"

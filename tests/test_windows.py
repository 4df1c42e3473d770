"""On Windows every way in ends with one sentence, not with an ImportError of a module that is missing there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).resolve().parents[1]

WINDOWS = """
import argparse, asyncio, runpy, signal, sys  # of the standard library; those that Windows has, in Linux's version

for name in ("fcntl", "grp", "pwd", "resource", "termios", "uvloop"):
    sys.modules[name] = None  # an import of it is an ImportError
sys.platform = "win32"
sys.argv[1:] = ["--help"]
"""


@pytest.mark.parametrize(
    "program",
    [
        "import odradek",
        "from odradek import Broker",
        "import odradek.client",
        "import odradek.broker.testing.plugin",
        "from odradek.__main__ import main; main()",
        *(
            f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
            for name in ("odradek", "broker", "client", "pipeline", "protocol", "odradek.broker")
        ),
    ],
)
def test_one_sentence_says_that_it_does_not_run_there(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{WINDOWS}\n{program}"],
        capture_output=True, text=True, timeout=60, check=False, cwd=REPOSITORY, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Odradek does not run on Windows, because ")
    assert done.stderr.endswith(": use WSL2.\n")
    assert done.stderr.count("\n") == 1


def test_a_wheel_that_is_built_there_is_not_compiled() -> None:
    program = (
        "import build_backend\n"
        "build_backend.sys.platform = 'win32'\n"
        "build_backend.build_meta.build_wheel = lambda *_: 'plain.whl'\n"
        "print(build_backend.build_wheel('.'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=60, check=True, cwd=REPOSITORY, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.stdout == "plain.whl\n"
    assert done.stderr.endswith("plain Python, which is slower: on Windows it does not run\n")

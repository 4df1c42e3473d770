"""`uvx` and `pipx run`: each fetches our wheel from an index, installs it in an environment of its own and starts it.

The index is a directory with our wheel and those that it requires (PEP 503), so nothing else is asked for them.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheels import build, pip

pytestmark = pytest.mark.process

BIN = Path(sys.executable).parent
DEV = ("odradek", "dev", "--port", "0")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of an index with our wheel, its requirements, and pip, which pipx installs first."""
    wheels = tmp_path_factory.mktemp("wheels")
    odradek = build(tmp_path_factory, ODRADEK_COMPILE="0")
    pip("wheel", "--quiet", "--wheel-dir", str(wheels), str(odradek.filename), "pip", environment={})
    simple = tmp_path_factory.mktemp("simple")
    for wheel in wheels.glob("*.whl"):
        project = simple / re.sub(r"[-_.]+", "-", wheel.name.partition("-")[0]).lower()
        project.mkdir()
        (project / "index.html").write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>')
    return simple.as_uri()


def commands(index: str) -> dict[str, list[str]]:
    return {
        "uvx": [str(BIN / "uvx"), "--index", index, "--python", sys.executable, *DEV],
        # By default pipx uses uv where it finds it.
        "pipx": [
            *(str(BIN / "pipx"), "run", "--backend", "pip", "--python", sys.executable, "--index-url", index),
            *DEV,
        ],
    }


@pytest.mark.timeout(600)
@pytest.mark.parametrize("runner", ["uvx", "pipx"])
def test_a_runner_starts_a_broker_for_development(runner: str, index: str, tmp_path: Path) -> None:
    own = {"HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"), "UV_CACHE_DIR": str(tmp_path / "uv")}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PIPX_"))}
    with subprocess.Popen(
        commands(index)[runner], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        env=inherited | own, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            printed = process.stdout.readline()
            found = re.fullmatch(r"bootstrap\.servers=127\.0\.0\.1:(\d+)\n", printed)
            assert found, printed + process.stderr.read()  # it has ended
            socket.create_connection(("127.0.0.1", int(found[1])), timeout=10).close()
            process.terminate()  # pipx has become the broker, uvx passes the signal on
            _, errors = process.communicate(timeout=60)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, errors

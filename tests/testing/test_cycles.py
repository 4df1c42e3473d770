from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.testing.cycles import KINDS

ROOT = Path(__file__).parents[2]


@pytest.mark.process
async def test_brokers_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = (sys.executable, "-m", "tests.testing.cycles", "--cycles", str(2 * len(KINDS)))
    cycles = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    output, _ = await cycles.communicate()
    assert cycles.returncode == 0, output.decode()
    assert b"directories=0" in output

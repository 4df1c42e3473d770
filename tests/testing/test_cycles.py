from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.testing.cycles import KINDS, run_cycles


def test_brokers_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, after = run_cycles(2 * len(KINDS), tmp_path)
    assert after == before
    assert after.directories == 0

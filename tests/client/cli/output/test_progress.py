"""The line of progress, on a terminal and elsewhere."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from odradek.client.cli.output import progress
from odradek.client.cli.output.progress import Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds, as its one element."""
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_a_terminal_shows_progress_and_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    shown = Progress(total=1000)
    clock[0] += 0.1
    shown.add(10, 100, 100)
    assert capsys.readouterr().err == ""  # too soon
    clock[0] += 0.9
    shown.add(4990, 900_000, 450)
    assert capsys.readouterr().err == "\r\x1b[K 45% #########...........  5,000 records  5,000/s  0.9 MB/s"
    clock[0] += 1
    shown.add(5000, 1_100_000, 2000)
    assert capsys.readouterr().err.startswith("\r\x1b[K100% ####################  10,000 records  5,000/s")
    shown.clear()
    assert capsys.readouterr().err == "\r\x1b[K"
    assert shown.summary() == "10,000 records, 2.0 MB in 2.00 s: 5,000 records/s, 1.0 MB/s"


def test_work_of_unknown_size_has_no_percentage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    shown = Progress()
    clock[0] += 1
    shown.add(7, 7, 7)
    assert capsys.readouterr().err == "\r\x1b[K7 records  7/s  0.0 MB/s"


def test_files_and_pipes_get_no_progress(capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    shown = Progress(10)
    clock[0] += 1
    shown.add(5, 5, 5)
    shown.clear()
    assert capsys.readouterr().err == ""

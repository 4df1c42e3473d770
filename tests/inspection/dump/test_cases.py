"""Sound and damaged files with every flag, compared with the output of Kafka's DumpLogSegments 4.3.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.cli import run
from tests.inspection.dump.cases import CASES, Case
from tests.inspection.dump.recording import RECORDED, recorded, recording, write_files


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_prints_what_kafka_prints(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_files(case, tmp_path)
    monkeypatch.chdir(tmp_path)
    status = run(["dump-log", "--files", case.dumped, *case.options])
    out, err = capfdbinary.readouterr()
    if status:
        *lines, reason = err.splitlines(keepends=True)
        assert reason.startswith(b"error: "), "one line says what is wrong"
        err = b"".join(lines)
    assert recording(out, err, tmp_path, failed=status != 0) == recorded(case)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == case.files(), "no file was changed or made"


def test_nothing_is_recorded_without_a_case() -> None:
    assert {path.stem for path in RECORDED.iterdir()} == {case.name for case in CASES}

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordinator.consumer_group.transcript import run

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_group_does_what_the_transcript_says(script: Path) -> None:
    text = script.read_text()
    assert run(text) == text

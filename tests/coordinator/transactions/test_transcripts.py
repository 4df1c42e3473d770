"""The transcripts in `scripts/`, played again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.coordinator.transactions.transcript import TransactionTranscript

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_transactional_id_does_what_the_script_says(script: Path) -> None:
    expected = script.read_text().splitlines()

    transcript = list(TransactionTranscript().play(expected))

    if os.environ.get("UPDATE_SCRIPTS"):
        script.write_text("\n".join(transcript) + "\n")
    assert transcript == expected or os.environ.get("UPDATE_SCRIPTS")

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.checkpoints.offset_checkpoints import OffsetCheckpoint
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles


@pytest.fixture
def checkpoint(tmp_path: Path) -> OffsetCheckpoint:
    return OffsetCheckpoint(OsFiles(), str(tmp_path), "offsets")


def test_offsets_are_read_as_written(checkpoint: OffsetCheckpoint) -> None:
    checkpoint.write(lambda: {("t", 1): 5, ("a.b-c", 0): 7})
    assert checkpoint.read() == checkpoint.read_sound() == {("t", 1): 5, ("a.b-c", 0): 7}


def test_a_missing_file_has_no_offsets(checkpoint: OffsetCheckpoint) -> None:
    assert checkpoint.read() == checkpoint.read_sound() == {}


def test_an_empty_file_is_sound(checkpoint: OffsetCheckpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Apache Kafka creates the files when it starts."""
    (tmp_path / "offsets").touch()
    assert checkpoint.read() == checkpoint.read_sound() == {}
    assert caplog.messages == []


def test_a_damaged_file_is_ignored_or_an_error(
    checkpoint: OffsetCheckpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "offsets").write_text("0\n2\nt 0 5\n")
    assert checkpoint.read() == {}
    [message] = caplog.messages
    assert message == f"ignoring {tmp_path}/offsets: 1 row where the file claims 2"
    with pytest.raises(MalformedFileError, match="offsets: 1 row where the file claims 2"):
        checkpoint.read_sound()

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.checkpoints.metadata_revision import (
    SeenMetadata,
    read_metadata_revision,
    write_metadata_revision,
)
from odradek.broker.storage.checkpoints.text_file import MalformedFileError
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.names import METADATA_REVISION


def test_a_revision_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_metadata_revision(OsFiles(), str(tmp_path)) == SeenMetadata(0, 0)

    for seen in (SeenMetadata(7, 3), SeenMetadata(2**63 - 1, 2**63 - 1)):
        write_metadata_revision(OsFiles(), str(tmp_path), seen)
        assert read_metadata_revision(OsFiles(), str(tmp_path)) == seen

    assert [each.name for each in tmp_path.iterdir()] == [METADATA_REVISION]


@pytest.mark.parametrize("content", [b"", b"7", b"{}", b'{"version":0}', b'{"version":1,"revision":7}', b"\xff"])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / METADATA_REVISION).write_bytes(content)

    with pytest.raises(MalformedFileError, match=METADATA_REVISION):
        read_metadata_revision(OsFiles(), str(tmp_path))

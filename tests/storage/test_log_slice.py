from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.storage.disk.descriptors import DescriptorCache
from odradek.broker.storage.disk.files import OsFiles
from odradek.broker.storage.log_slice import EMPTY_SLICE, LogSlice


def test_the_start_of_a_slice_is_read_without_the_rest(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    cache = DescriptorCache(OsFiles())

    with LogSlice(cache, cache.pin(str(tmp_path / "f")), 2, 6) as part:
        assert part.read_start(3) == b"234"
        assert part.read_start(100) == part.read() == b"234567"
    with pytest.raises(ValueError, match="was released"):
        part.read_start(3)
    cache.close()


def test_an_empty_slice_has_no_start() -> None:
    assert EMPTY_SLICE.read_start(3) == b""

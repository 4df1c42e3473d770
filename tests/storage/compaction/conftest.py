"""Fixtures of the tests of compaction."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.compaction.compacted import Compacted


@pytest.fixture
def compacted(tmp_path: Path) -> Iterator[Compacted]:
    made = Compacted(tmp_path)
    yield made
    made.log_dir.close()
    made.resources.descriptors.close()

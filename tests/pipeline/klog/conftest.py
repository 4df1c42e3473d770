from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.klog.readings import GOLDEN, Writing


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    """A copy of a log directory of Kafka, which tests damage."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "golden"))


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    written = Writing(tmp_path / "logs")
    yield written
    written.close()

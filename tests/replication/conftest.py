from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.storage.log_dir import LogDir
from tests.handlers.conftest import apache_port, broker, wire
from tests.storage.logs import open_log_dir

__all__ = ["apache_port", "broker", "log_dir", "threads", "wire"]


@pytest.fixture
def log_dir(tmp_path: Path) -> Iterator[LogDir]:
    opened = open_log_dir(tmp_path / "log")
    yield opened
    opened.close()


@pytest.fixture
async def threads() -> AsyncIterator[DiskThreads]:
    made = DiskThreads(asyncio.get_running_loop())
    yield made
    await made.close()

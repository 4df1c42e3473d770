"""A log with an appender, for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.replication.appends.log_appender import LARGE_APPEND_BYTES, LogAppender
from odradek.broker.storage.append.append_info import AppendInfo
from odradek.broker.storage.log import Log
from odradek.broker.storage.log_config import LogConfig
from odradek.broker.storage.log_dir import LogDir
from tests.storage.logs import NOW, TOPIC_ID, batch

LARGE = b"x" * LARGE_APPEND_BYTES


class Appending:
    """A log, its appender, and the appends that it reported."""

    def __init__(self, log_dir: LogDir, threads: DiskThreads, **properties: Any) -> None:
        self.log: Log = log_dir.create_log("t", 0, TOPIC_ID, LogConfig(**properties))
        self.reported: list[int] = []
        self.on_reported: dict[int, Callable[[], None]] = {}
        self.appender = LogAppender(self.log, threads, self._on_appended)
        self.appender.leader_epoch = 0

    def _on_appended(self, info: AppendInfo) -> None:
        self.reported.append(info.base_offset)
        self.log.advance_high_watermark(info.last_offset + 1)
        if info.base_offset in self.on_reported:
            self.on_reported[info.base_offset]()

    def append(self, *values: bytes) -> AppendInfo | asyncio.Future[AppendInfo]:
        return self.appender.append_as_leader(batch(*values), 0, NOW)

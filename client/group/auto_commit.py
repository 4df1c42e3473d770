"""Automatic commits of a group member (`enable_auto_commit`): at intervals, and before partitions are revoked.

A commit at an interval runs in the background, and may have to be repeated. It ends when a later commit begins: its
offsets would replace those of the later one.
"""

from __future__ import annotations

import asyncio
import logging

from odradek.client.config import ConsumerConfig
from odradek.client.errors import ClientError
from odradek.client.group.committed_offsets import CommittedOffsets, Offsets

_LOG = logging.getLogger(__name__)


class AutoCommit:
    """Commits the consumed offsets of one consumer; does nothing if `enable_auto_commit` is off.

    A commit that fails is a warning in the log: the records after the last commit are read again by the next owner.
    """

    def __init__(self, config: ConsumerConfig, offsets: CommittedOffsets) -> None:
        self._is_enabled = config.enable_auto_commit
        self._interval = config.auto_commit_interval_ms / 1000
        self._timeout_ms = config.request_timeout_ms
        self._offsets = offsets
        self._loop = asyncio.get_running_loop()
        self._started_at = self._loop.time()  # the last commit at an interval
        self._task: asyncio.Task[None] | None = None

    def is_due(self) -> bool:
        """Whether the interval is over and no commit is under way."""
        is_running = self._task is not None and not self._task.done()
        return self._is_enabled and not is_running and self._loop.time() - self._started_at >= self._interval

    def start(self, consumed: Offsets) -> None:
        """Commit in the background."""
        self._started_at = self._loop.time()
        self._task = asyncio.create_task(self._commit(consumed))

    async def commit_revoked(self, consumed: Offsets) -> None:
        """Commit before partitions are revoked, if the consumer is a member of its group."""
        self.supersede()
        if self._is_enabled and self._offsets.is_member:
            await self._commit(consumed)

    def supersede(self) -> None:
        """Cancel the commit that is under way, before a later one; the rest of its partitions is due again."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            self._started_at = float("-inf")

    def cancel(self) -> None:
        """Cancel the commit that is under way."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Cancel the commit that is under way, and wait for its end."""
        self.cancel()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _commit(self, consumed: Offsets) -> None:
        try:
            await self._offsets.commit(consumed, self._timeout_ms)
        except ClientError as error:
            _LOG.warning("%s", error)

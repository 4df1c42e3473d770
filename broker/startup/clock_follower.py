"""What a broker does when a test moves its clock: see `odradek.broker.waiting.ClockFollower`.

| what | then |
|---|---|
| members of groups that live | keep the rest of their sessions, see `coordinator.sessions` |
| idle connections | are no longer idle than before |
| threads of the disk | are waited for, so that the effects of one deadline are there at the next |
"""

from __future__ import annotations

from odradek.broker.coordinator.group_coordinator import GroupCoordinator
from odradek.broker.replication.appends.disk_threads import DiskThreads
from odradek.broker.server.server import Server


class BrokerFollower:
    """The follower of one broker's clock."""

    def __init__(self, groups: GroupCoordinator, server: Server, threads: DiskThreads) -> None:
        self._groups = groups
        self._server = server
        self._threads = threads

    def begin(self) -> None:
        self._threads.watch()

    def before_move(self, seconds: float) -> None:
        self._groups.keep_living(seconds)

    def moved(self, seconds: float) -> None:
        self._server.clock_moved(seconds)

    @property
    def is_busy(self) -> bool:
        return self._threads.is_busy

    async def settled(self) -> None:
        await self._threads.settled()

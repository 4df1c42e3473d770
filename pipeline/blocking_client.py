"""Use the asyncio client from code that blocks: an event loop that runs only while that code waits.

Tasks of Spark read and write through the client. There is no thread. `EventLoop.run` is called for every request, so
its cost counts: `asyncio.Runner.run` would replace the process's SIGINT handler in each call, which takes as long as
sending the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from odradek.client.config import ClientConfig
from odradek.client.network.cluster import Cluster
from odradek.client.network.connection import TcpNetwork

T = TypeVar("T")


class EventLoop:
    """An event loop of one thread."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()

    def run(self, work: Awaitable[T]) -> T:
        """Run the event loop until `work` is done; return its result or raise its exception."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        """Cancel the remaining tasks and close the loop."""
        self._runner.close()


async def connect(config: ClientConfig) -> Cluster:
    """Return a started cluster; on an error its connections are closed first."""
    cluster = Cluster(config, TcpNetwork())
    try:
        await cluster.start()
    except BaseException:
        await cluster.close()
        raise
    return cluster

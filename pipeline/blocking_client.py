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
from odradek.client.network.transport import TcpNetwork

T = TypeVar("T")


class EventLoop:
    """An event loop for one thread at a time."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()

    def run(self, work: Awaitable[T]) -> T:
        """Run the event loop until `work` is done; return its result or raise its exception."""
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        """Cancel the remaining tasks and close the loop."""
        self._runner.close()


class BlockingClient:
    """Connections and metadata of a cluster, with an event loop of their own, for one thread at a time.

    The constructor connects, and retries for `timeout_ms` while no bootstrap server responds. Raises ClientError.
    """

    def __init__(self, config: ClientConfig, timeout_ms: int, *, creates_topics: bool = False) -> None:
        self.config = config
        self._loop = EventLoop()
        try:
            self.cluster = self.run(_connect(config, timeout_ms, creates_topics))
        except BaseException:
            self._loop.close()
            raise

    def run(self, work: Awaitable[T]) -> T:
        """Run the event loop until `work` is done; return its result or raise its exception."""
        return self._loop.run(work)

    def close(self) -> None:
        """Close all connections and the event loop."""
        self.run(self.cluster.close())
        self._loop.close()


async def _connect(config: ClientConfig, timeout_ms: int, creates_topics: bool) -> Cluster:
    """Return a started cluster; on an error its connections are closed first."""
    cluster = Cluster(config, TcpNetwork(config), creates_topics=creates_topics)
    try:
        await cluster.start(timeout_ms)
    except BaseException:
        await cluster.close()
        raise
    return cluster

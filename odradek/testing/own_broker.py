"""Our broker under a handle: started with the handle, isolated from test to test, and observed."""

from __future__ import annotations

import asyncio

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client.admin.admin import Admin
from odradek.testing.properties import Properties, as_text
from odradek.testing.request_log import RequestLog

_LOOK_SECONDS = 0.25
"""The longest wait for a request. Timers change groups without one, when a member falls silent for example."""


class OwnBroker:
    """A `ThreadedBroker` that runs from the constructor to `close`: a `Cluster`.

    The constructor raises as `ThreadedBroker.start` does, and TypeError for a property of a wrong type.
    """

    def __init__(self, properties: Properties | None = None) -> None:
        self.threaded = ThreadedBroker(as_text(properties or {}))
        self.threaded.start()
        self._requests = RequestLog()
        self.threaded.call(self.threaded.broker.routes.add_interceptor, self._requests.intercept, outermost=True)
        self._baseline: tuple[set[str], set[str]] | None = None

    @property
    def bootstrap(self) -> str:
        return self.threaded.bootstrap

    def real_name(self, topic: str) -> str:
        return topic

    def may_have(self, topic: str) -> bool:  # noqa: ARG002 - of every cluster
        return True

    def new_name(self, topic: str) -> str:
        return topic

    async def begin_test(self, admin: Admin) -> None:
        self._requests.clear()
        if self._baseline is None:
            self._baseline = (set(await admin.list_topics()), set(await admin.list_groups()))

    async def end_test(self, admin: Admin) -> None:
        """Delete the topics and groups that were not there before the first test."""
        if self._baseline is not None:
            topics, groups = self._baseline
            await admin.delete_topics(set(await admin.list_topics()) - topics)
            await admin.delete_groups(set(await admin.list_groups()) - groups)

    async def end_session(self, admin: Admin) -> None:
        """Nothing: the broker ends, and its directory with it."""

    @property
    def changes(self) -> int:
        return self._requests.changes

    async def change(self, since: int) -> None:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def listener() -> None:
            loop.call_soon_threadsafe(changed.set)

        self._requests.add_listener(listener)
        try:
            if self._requests.changes == since:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await changed.wait()
        except TimeoutError:
            pass
        finally:
            self._requests.remove_listener(listener)

    def request_lines(self) -> list[str]:
        return ["last requests, the newest at the end:", *(f"  {line}" for line in self._requests.lines() or ["none"])]

    def close(self) -> None:
        self.threaded.stop()

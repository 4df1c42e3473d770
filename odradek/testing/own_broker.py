"""Our broker under a handle: it runs from the constructor to `close`, and each test finds the same state.

```
start ─► __consumer_offsets ─► baseline ─► snapshot ─► test ─► restore ─► test ─► restore ─► …
                                                          └─ stopped, killed, failed, or its clock was moved:
                                                             killed, started on the files of the snapshot
```
"""

from __future__ import annotations

import asyncio

from odradek.broker.explain.trace import Trace
from odradek.broker.startup.embedded_config import Properties
from odradek.broker.testing.faults import BlockingFaults
from odradek.broker.testing.movable_clock import MovableClock
from odradek.broker.testing.snapshots import Snapshot, Snapshots
from odradek.broker.testing.threaded import ThreadedBroker
from odradek.testing.clients import Clients
from odradek.testing.request_log import OWN_CLIENT_ID, RequestLog

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module

_LOOK_SECONDS = 0.25
"""The longest wait for a request. Timers change groups without one, when a member falls silent for example."""


class OwnBroker:
    """A `ThreadedBroker`, and what a test may do to it: a `Cluster`.

    The constructor raises as `ThreadedBroker.start` does. The methods that block may be called on any thread but the
    broker's.
    """

    def __init__(self, properties: Properties | None = None) -> None:
        self.clock = MovableClock()
        self.threaded = ThreadedBroker(properties, clock=self.clock)
        broker = self.threaded.broker
        self._requests = RequestLog(broker)
        self.faults = BlockingFaults(self.threaded)
        self.trace = Trace(broker, reader=OWN_CLIENT_ID)
        broker.on_start.append(self.trace.install)
        self._snapshots = Snapshots(broker)
        self._baseline: Snapshot | None = None
        self._of_test: list[Snapshot] = []
        try:
            self.threaded.start()
            # Each test with a group would make its 50 partitions, which takes longer than the rest of the test.
            self.threaded.run(broker.services.groups.create_topic())
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap(self) -> str:
        return self.threaded.bootstrap

    def real_name(self, topic: str) -> str:
        return topic

    async def name_to_create(self, topic: str, clients: Clients) -> str:  # noqa: ARG002 - of every cluster
        return topic

    async def mistakes(self, clients: Clients) -> list[str]:  # noqa: ARG002 - of every cluster
        return []

    def time_ms(self) -> int | None:
        return self.clock.time_ms() if self.clock.was_moved else None

    # ------------------------------------------------------------------------------------------------------- isolation

    async def begin_session(self, clients: Clients) -> None:
        """Nothing: the broker is new."""

    async def begin_test(self, clients: Clients) -> None:
        self._requests.clear()
        self.trace.clear()
        if self._baseline is None:
            await clients.close()  # their producer goes on with other sequence numbers than those of the snapshot
            self._baseline = await asyncio.to_thread(self.threaded.run, self._snapshots.snapshot())

    async def end_test(self, clients: Clients) -> None:
        """Return to the state after the baseline, whatever the test did to the broker."""
        await clients.close()
        await asyncio.to_thread(self._end_test)

    def _end_test(self) -> None:
        self.faults.clear()
        assert self._baseline is not None
        self._restore(self._baseline, starts_anew=self.clock.was_moved)
        for snapshot in self._of_test:
            snapshot.discard()
        self._of_test.clear()

    async def end_session(self, clients: Clients) -> None:
        """Nothing: the broker ends, and its directory with it."""

    # ------------------------------------------------------------------------------------------- for tests, all block

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the running broker. One that a test takes ends with the test."""
        taken = self.threaded.run(self._snapshots.snapshot())
        if self._baseline is not None:
            self._of_test.append(taken)
        return taken

    def restore(self, state: Snapshot) -> None:
        """Bring the broker back to a snapshot, also if it was stopped or has failed. Raises TypeError, ValueError."""
        if not isinstance(state, Snapshot):
            raise TypeError(f"restore takes what kafka.snapshot() has returned, and not {state!r}")
        self._restore(state, starts_anew=False)

    def _restore(self, state: Snapshot, *, starts_anew: bool) -> None:
        broker = self.threaded.broker
        if not starts_anew and self.threaded.is_running and not broker.failed.is_set() and not broker.log_dirs.offline:
            self.threaded.run(self._snapshots.restore(state))
            return
        state.check()
        self.threaded.kill()
        if starts_anew:
            self.clock.reset()
        state.copy_to(*broker.config.log_dirs)
        self.threaded.start()

    # ---------------------------------------------------------------------------------------------------------- events

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

    def report_lines(self) -> list[str]:
        rules = [str(rule) for rule in self.faults.rules]
        return [
            "last requests, the newest at the end:",
            *(f"  {line}" for line in self._requests.lines() or ["none"]),
            *(["rules of faults:", *(f"  {rule}" for rule in rules)] if rules else []),
        ]

    def unused_rules(self) -> list[str]:
        return [str(rule) for rule in self.faults.unused()]

    def close(self) -> None:
        self._snapshots.close()
        self.threaded.close()

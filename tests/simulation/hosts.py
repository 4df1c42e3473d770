"""A simulated machine: it is on or off, runs at most one process, and has clocks of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.node_loop import NodeLoop
from tests.simulation.world import World

_EPOCH_MS = 1_700_000_000_000


class Host:
    """One machine. `loop` is the event loop of the process that runs there, None if none does.

    `time_offset_ms` moves its wall clock; `boots` counts its starts.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_on = True
        self.boots = 1
        self.time_offset_ms = 0
        self.loop: NodeLoop | None = None
        self.loops: list[NodeLoop] = []  # of all processes that ever ran, so that nothing of them is collected

    def __repr__(self) -> str:
        return self.name

    def begin_process(self) -> NodeLoop:
        """Start a process: an event loop without anything in it."""
        assert self.loop is None
        loop = NodeLoop(self.world, self.name, lambda context: self._error(loop, context))
        self.loop = loop
        self.loops.append(loop)
        return loop

    def end_process(self) -> None:
        """Kill the process; its machine stays on."""
        if self.loop is not None:
            self.loop.die()
            self.loop = None

    def _error(self, loop: NodeLoop, context: dict[str, Any]) -> None:
        if loop is self.loop:
            error = context.get("exception")
            self.world.fail(f"{self.name}: {context['message']}: {error!r}")


class HostClock:
    """The clocks that the process on a host reads."""

    def __init__(self, host: Host, loop: NodeLoop) -> None:
        self._host = host
        self.monotonic: Callable[[], float] = loop.time

    def time_ms(self) -> int:
        return _EPOCH_MS + self._host.time_offset_ms + int(self._host.world.now * 1000)

    def boot_time(self) -> float:
        return self._host.world.now

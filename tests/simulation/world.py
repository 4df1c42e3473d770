"""The virtual time of a run, in which several event loops take turns: one for each process of the simulated cluster.

```
heap of timers (all loops)  ──due──►  ready queue of each loop  ──chosen by the seed──►  one turn of one loop
```

While any loop has work, time stands still; then it jumps to the next timer. A loop runs a turn: what was ready when the
turn began. Which loop runs next is drawn from the seed. So a process may stop (`NodeLoop.pause`) or die
(`NodeLoop.die`) while the others go on, and one seed has one run.

`draw` is the only source of chance of a run. `note` adds an event to the trace: two runs are the same if their
fingerprints are.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from tests.simulation.node_loop import Call, NodeLoop

_MOST_TURNS_AT_ONCE = 200_000
"""The turns without progress of the time after which a run counts as an endless loop."""


class EndlessLoopError(Exception):
    """The processes exchange work for ever, and time stands still."""


class World:
    """The time, the chance and the trace of one run. `now` is in seconds since its begin."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.draw = random.Random(seed)
        self.fingerprint = 0
        self.notes = 0
        self.listener: Callable[[float, str], None] | None = None
        self.failures: list[str] = []
        self._runnable: list[NodeLoop] = []
        self._timers: list[tuple[float, int, Call]] = []
        self._numbers = count()

    def note(self, text: str) -> None:
        """Add an event to the trace."""
        self.notes += 1
        self.fingerprint = crc32(f"{self.now:.6f} {text}".encode(), self.fingerprint)
        if self.listener is not None:
            self.listener(self.now, text)

    def fail(self, text: str) -> None:
        """Record that something is wrong; the run goes on."""
        self.failures.append(f"{self.now:.3f} s: {text}")
        self.note(f"FAILURE {text}")

    def wake(self, loop: NodeLoop) -> None:
        """Give a loop a turn, because it has work."""
        self._runnable.append(loop)

    def schedule(self, when: float, call: Call) -> None:
        """Make `call` ready at a time."""
        heapq.heappush(self._timers, (when, next(self._numbers), call))

    def run(self, until: float) -> None:
        """Run all loops up to a time. Raises `EndlessLoopError`."""
        turns = 0
        while True:
            while self._runnable:
                loop = self._next_loop()
                loop.turn()
                turns += 1
                if turns > _MOST_TURNS_AT_ONCE:
                    raise EndlessLoopError(f"no progress at {self.now:.3f} s, loop of {loop.name}")
            if not self._timers or self._timers[0][0] > until:
                self.now = max(self.now, until)
                return
            self._fire()
            turns = 0

    def _next_loop(self) -> NodeLoop:
        runnable = self._runnable
        index = self.draw.randrange(len(runnable)) if len(runnable) > 1 else 0
        runnable[index], runnable[-1] = runnable[-1], runnable[index]
        return runnable.pop()

    def _fire(self) -> None:
        """Move the time to the next timers, and make all of that time ready."""
        timers = self._timers
        self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            call = heapq.heappop(timers)[2]
            if not call.is_cancelled:
                call.loop.make_ready(call)

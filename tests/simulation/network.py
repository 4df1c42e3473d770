"""The network between the hosts: messages and byte streams that are delayed, held up and delivered late.

```
send ─► delay ─► due ─┬─ the way from there to here is cut ─► held, and delivered after the cut (late)
                      ├─ the receiver is gone ─► dropped, or a reset if its machine is on
                      └─ delivered to the receiver's loop
```

A cut has a direction. What is sent during a cut is not lost, because TCP repeats it: it arrives after the cut, however
long the sender has given up. A stream keeps its order; single messages (`post`) do not. `lose` makes the network drop
a share of the single messages for good.
"""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.simulation.hosts import Host
from tests.simulation.node_loop import Call, NodeLoop
from tests.simulation.world import World

Way = tuple[str, str]
"""(name of the sending host, name of the receiving host)"""

_SHORTEST, _USUAL, _LONG = 0.0002, 0.002, 0.05
_LONG_ONES = 0.02
"""The share of deliveries that take up to `_LONG` seconds."""


class Network:
    """All ways between hosts. `listeners` has the accepting side of each open port."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.listeners: dict[tuple[str, int], Any] = {}
        self.lost_share: dict[Way, float] = {}
        self.slowness: dict[Way, float] = {}  # the most seconds that a delivery takes longer
        self.descriptors = count(1_000_000)  # beyond those of the process, so that a mix-up fails
        self.delivered = 0
        self._cut: dict[Way, int] = {}
        self._held: dict[Way, deque[Callable[[], None]]] = {}
        self._driver = NodeLoop(world, "network", self._failed)
        self._context = contextvars.copy_context()

    def cut(self, way: Way) -> None:
        self._cut[way] = self._cut.get(way, 0) + 1

    def heal(self, way: Way) -> None:
        """Undo one cut of a way; when none is left, deliver what was held, in its order."""
        self._cut[way] -= 1
        if self._cut[way]:
            return
        del self._cut[way]
        held = self._held.pop(way, deque())
        when = self.world.now
        for deliver in held:
            when += self.world.draw.uniform(0, _SHORTEST)
            self.at(when, deliver)

    def is_cut(self, way: Way) -> bool:
        return way in self._cut

    @property
    def is_disturbed(self) -> bool:
        """Whether any way is cut, slow, or loses what it carries."""
        return bool(self._cut or self.slowness or self.lost_share)

    def delay(self, way: Way) -> float:
        """Draw the time that one delivery takes."""
        draw = self.world.draw
        delay = draw.uniform(_SHORTEST, _USUAL)
        if draw.random() < _LONG_ONES:
            delay += draw.uniform(0, _LONG)
        slowness = self.slowness.get(way)
        return delay if slowness is None else delay + draw.uniform(0, slowness)

    def at(self, when: float, function: Callable[..., None], *arguments: Any) -> None:
        self.world.schedule(when, Call(self._driver, function, arguments, self._context, when))

    def post(self, sender: Host, receiver: Host, deliver: Callable[[], None]) -> None:
        """Send one message, on its own: it may overtake others. `deliver` is called on the loop of the receiver."""
        way = (sender.name, receiver.name)
        lost = self.lost_share.get(way)
        if lost is not None and self.world.draw.random() < lost:
            return
        self.at(self.world.now + self.delay(way), self._arrive, way, receiver, receiver.loop, deliver)

    def _arrive(self, way: Way, receiver: Host, loop: NodeLoop | None, deliver: Callable[[], None]) -> None:
        if way in self._cut:
            self.hold(way, lambda: self._arrive(way, receiver, loop, deliver))
        elif loop is not None and receiver.loop is loop:
            self.delivered += 1
            loop.call_soon(deliver)

    def hold(self, way: Way, deliver: Callable[[], None]) -> None:
        """Keep a delivery until the way is healed."""
        self._held.setdefault(way, deque()).append(deliver)

    def _failed(self, context: dict[str, Any]) -> None:
        self.world.fail(f"network: {context['message']}: {context.get('exception')!r}")

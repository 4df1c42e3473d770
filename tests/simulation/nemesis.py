"""The faults of a run: a schedule drawn from the seed, and what each step does to the cluster.

| fault | for a time | on |
|---|---|---|
| `kill`, `stop`, `power` | the broker is down, then it starts | one broker, or the present leader or controller |
| `blackout` | all brokers lose power at once, and start one after the other | all brokers |
| `pause` | the process stands still | one broker, or the store |
| `doze` | the process stands still until its session is no longer certain, and not over yet | a coordinator |
| `cut` | one way carries nothing until it is healed; then all of it arrives late | brokers, store, clients |
| `isolate` | all ways of one broker to the others and the store, in one or both directions | one broker |
| `depose` | all ways of a leader but those of its clients; for long enough, another one leads | a leader |
| `slow`, `lossy` | deliveries take up to seconds longer; answers and requests of the store are lost | one way |
| `disk` | work of the disk takes up to a second longer | one broker |
| `lease`, `compact`, `clock` | at once: a session ends, the store's history is dropped, a wall clock jumps | |

The rule for `power`: a replica may lose what is not synced only while another one that can be elected has it. The step
is left out while that is not so, and so is `blackout`. If all brokers sync first, all replicas may lose power together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from tests.simulation.cluster import CLIENTS, NODE_IDS, STORE, Cluster
from tests.simulation.network import Way
from tests.simulation.remakes import has_remakes

DOZE, DECIDING = "doze", "deciding"
LEADER, CONTROLLER, EVERYBODY = "leader", "controller", "everybody"
_TARGETS = (*map(str, NODE_IDS), LEADER, CONTROLLER)
_SHORT, _DEPOSING, _LONG = 0.2, 2.7, 6.0
"""In seconds; after `_DEPOSING` the session of a silent broker has ended."""
_DOZING = 0.25
"""The longest time (s) between the deadline of a session and the end of a doze: below that to the session's end."""
_LOOKING = 0.002
"""The time (s) between two looks for a decided transaction: its markers take as long."""
_DOZING_SHARE = 0.25
"""The share of seeds with dozes beside the faults that are drawn for all. They are drawn apart from these."""


Kind = str
"""A fault of the table above."""


class Step(NamedTuple):
    """One fault: what, on which broker or way, when (s), for how long (s), how strong."""

    at: float
    kind: str
    target: str
    seconds: float
    strength: float = 0.0

    def __str__(self) -> str:
        return f"{self.at:.2f} s {self.kind} {self.target} for {self.seconds:.2f} s, {self.strength:.2f}"


def draw_schedule(seed: int, begin: float, end: float, of: Sequence[Kind] = ()) -> list[Step]:
    """Draw the steps of a seed, in the order of time; with kinds of faults, ten of these."""
    draw = random.Random(f"schedule {seed}")
    steps = []
    kinds = of or draw.sample(sorted(_KINDS.keys() - {DOZE}), draw.randint(2, 6))
    for _ in range(10 if of else draw.randint(3, 14)):
        kind = draw.choice(kinds)
        at = draw.uniform(begin, end)
        seconds = draw.uniform(_DEPOSING, _LONG)
        if kind != "depose" and draw.random() < 0.5:
            seconds = draw.uniform(_SHORT, 1.5)
        steps.append(Step(at, kind, _KINDS[kind](draw), seconds, draw.random()))
    if of:
        return sorted(steps)
    steps += _dozes(random.Random(f"dozes {seed}"), begin, end)
    if has_remakes(seed):
        steps += _kills(random.Random(f"kills {seed}"), begin, end)
    return sorted(steps)


def _dozes(draw: random.Random, begin: float, end: float) -> list[Step]:
    count = draw.randint(1, 6) if draw.random() < _DOZING_SHARE else 0
    return [Step(draw.uniform(begin, end), DOZE, DECIDING, _LONG, draw.random()) for _ in range(count)]


def _kills(draw: random.Random, begin: float, end: float) -> list[Step]:
    """Draw kills of brokers that start again at once: for a topic that is made again and again."""
    return [
        Step(draw.uniform(begin, end), "kill", _node(draw), draw.uniform(_SHORT, 1.0))
        for _ in range(draw.randint(2, 8))
    ]


def _node(draw: random.Random) -> str:
    return draw.choice(_TARGETS)


def _way(draw: random.Random) -> str:
    ends = [*(f"node-{node_id}" for node_id in NODE_IDS), draw.choice((STORE, STORE, CLIENTS))]
    sender, receiver = draw.sample(ends, 2)
    return f"{sender}>{receiver}"


def _store_way(draw: random.Random) -> str:
    ends = (f"node-{draw.choice(NODE_IDS)}", STORE)
    sender, receiver = draw.sample(ends, 2)
    return f"{sender}>{receiver}"


def _paused(draw: random.Random) -> str:
    return draw.choice((*_TARGETS, STORE))


_KINDS: dict[Kind, Callable[[random.Random], str]] = {
    "kill": _node,
    "power": _node,
    "blackout": lambda _: EVERYBODY,
    "stop": _node,
    "pause": _paused,
    DOZE: lambda _: DECIDING,
    "cut": _way,
    "isolate": _node,
    "depose": lambda _: LEADER,
    "slow": _way,
    "lossy": _store_way,
    "disk": _node,
    "lease": _node,
    "compact": lambda _: STORE,
    "clock": _node,
}


class Nemesis:
    """Carries out a schedule. `may_cut_power` is asked with the brokers before their power is cut.

    `deciding` returns a broker that coordinates a decided transaction whose markers are missing, None if none does.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        leader: Callable[[float], int],
        controller: Callable[[], int],
        deciding: Callable[[], int | None],
        may_cut_power: Callable[[Sequence[int]], bool],
        lease_of: Callable[[int], int],
    ) -> None:
        self._cluster = cluster
        self._leader = leader
        self._controller = controller
        self._deciding = deciding
        self._may_cut_power = may_cut_power
        self._lease_of = lease_of
        self._undo: dict[int, Callable[[], None]] = {}
        self._is_over = False

    def plan(self, steps: list[Step]) -> None:
        for number, step in enumerate(steps):
            self._cluster.network.at(step.at, self._begin, number, step)

    def heal(self) -> None:
        """Undo everything, and start what is down."""
        self._is_over = True
        for number in tuple(self._undo):
            self._end(number)
        for node_id in NODE_IDS:
            self._cluster.resume(node_id)
            self._cluster.start(node_id)

    def _begin(self, number: int, step: Step) -> None:
        if self._is_over:
            return
        self._cluster.world.note(f"fault {step}")
        undo: Callable[[], None] | None = getattr(self, f"_{step.kind}")(step)
        if undo is not None:
            self._undo[number] = undo
            self._cluster.network.at(self._cluster.world.now + step.seconds, self._end, number)

    def _end(self, number: int) -> None:
        undo = self._undo.pop(number, None)
        if undo is not None:
            self._cluster.world.note(f"end of fault {number}")
            undo()

    def _resolve(self, step: Step) -> int:
        """Return the broker that a step is about."""
        if step.target == LEADER:
            found = self._leader(step.strength)
        elif step.target == CONTROLLER:
            found = self._controller()
        else:
            found = int(step.target)
        return found if found in NODE_IDS else NODE_IDS[0]

    def _kill(self, step: Step) -> Callable[[], None]:
        node_id = self._resolve(step)
        self._cluster.kill(node_id)
        return partial(self._cluster.start, node_id)

    def _stop(self, step: Step) -> Callable[[], None]:
        node_id = self._resolve(step)
        self._cluster.stop(node_id)
        return partial(self._cluster.start_when_stopped, node_id)

    def _power(self, step: Step) -> Callable[[], None] | None:
        node_id = self._resolve(step)
        if not self._may_cut_power([node_id]):
            return None
        self._cluster.cut_power(node_id)
        return partial(self._cluster.start, node_id)

    def _blackout(self, step: Step) -> Callable[[], None] | None:
        if not self._may_cut_power(NODE_IDS):
            return None
        for node_id in NODE_IDS:
            self._cluster.cut_power(node_id)
        first = int(step.strength * len(NODE_IDS))
        network = self._cluster.network

        def start() -> None:
            for position, node_id in enumerate((*NODE_IDS[first:], *NODE_IDS[:first])):
                network.at(network.world.now + position * step.strength, self._cluster.start, node_id)

        return start

    def _pause(self, step: Step) -> Callable[[], None]:
        if step.target == STORE:
            loop = self._cluster.store_host.loop
            assert loop is not None
            loop.pause()
            return loop.resume
        node_id = self._resolve(step)
        self._cluster.pause(node_id)
        return partial(self._cluster.resume, node_id)

    def _doze(self, step: Step) -> None:
        """Pause the coordinator of the next decided transaction until a moment after the deadline of its session."""
        now, at = self._cluster.world.now, self._cluster.network.at
        node_id = self._deciding()
        if node_id is None:
            if now < step.at + step.seconds and not self._is_over:
                at(now + _LOOKING, self._doze, step)
            return
        broker = self._cluster.nodes[node_id].broker
        assert broker is not None
        deadline = broker.services.metadata.lease_deadline()
        if deadline > now:
            self._cluster.pause(node_id)
            at(deadline + step.strength * _DOZING, self._cluster.resume, node_id)

    def _cut(self, step: Step) -> Callable[[], None]:
        return self._cut_ways([_ends(step.target)])

    def _isolate(self, step: Step) -> Callable[[], None]:
        name = f"node-{self._resolve(step)}"
        others = [*(f"node-{each}" for each in NODE_IDS if f"node-{each}" != name), STORE]
        if step.strength < 0.3:  # the brokers alone
            others.remove(STORE)
        elif step.strength < 0.6:  # the store alone
            others = [STORE]
        outgoing: list[Way] = [(name, other) for other in others]
        incoming: list[Way] = [(other, name) for other in others]
        third = int(step.strength * 100) % 3
        return self._cut_ways(outgoing if third == 0 else incoming if third == 1 else outgoing + incoming)

    def _depose(self, step: Step) -> Callable[[], None]:
        """Cut a leader off from all but its clients, so that it does not know that it is deposed."""
        name = f"node-{self._leader(step.strength)}"
        others = [*(f"node-{each}" for each in NODE_IDS if f"node-{each}" != name), STORE]
        return self._cut_ways([(name, other) for other in others] + [(other, name) for other in others])

    def _cut_ways(self, ways: list[Way]) -> Callable[[], None]:
        network = self._cluster.network
        for way in ways:
            network.cut(way)

        def heal() -> None:
            for way in ways:
                network.heal(way)

        return heal

    def _slow(self, step: Step) -> Callable[[], None]:
        slowness, way = self._cluster.network.slowness, _ends(step.target)
        slowness[way] = 4 * step.strength**2
        return lambda: slowness.pop(way, None) and None

    def _lossy(self, step: Step) -> Callable[[], None]:
        shares, way = self._cluster.network.lost_share, _ends(step.target)
        shares[way] = 0.2 + 0.6 * step.strength
        return lambda: shares.pop(way, None) and None

    def _disk(self, step: Step) -> Callable[[], None]:
        disk = self._cluster.nodes[self._resolve(step)].disk
        disk.slowness = step.strength

        def heal() -> None:
            disk.slowness = 0.0

        return heal

    def _lease(self, step: Step) -> None:
        self._cluster.store.end_lease(self._lease_of(self._resolve(step)))

    def _compact(self, step: Step) -> None:
        self._cluster.store.compact()

    def _clock(self, step: Step) -> None:
        host = self._cluster.nodes[self._resolve(step)].host
        host.time_offset_ms = int((step.strength - 0.5) * 7_200_000)


def _ends(way: str) -> Way:
    sender, _, receiver = way.partition(">")
    return sender, receiver

"""The schedule of a seed: the same steps at the same times for every client."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

SESSION_SECONDS = 6.0
FIRST_MEMBERS = 4

Action = Literal["start", "close", "kill", "pause", "resume", "slow", "add_partitions", "create_topic"]


@dataclass(frozen=True, order=True)
class Step:
    """One action, `at` seconds after the first assignment. `seconds`: how long a listener takes (`slow`)."""

    at: float
    action: Action
    member: str = ""
    seconds: float = 0.0


def first_members() -> list[str]:
    """The members that run before the schedule begins."""
    return [f"m{number}" for number in range(1, FIRST_MEMBERS + 1)]


def schedule(seed: int) -> list[Step]:
    """The steps of a seed, in the order of time. Its blocks are shuffled; the rolling restart is the last."""
    planner = _Planner(random.Random(seed))
    blocks = [
        planner.add,
        planner.pause_briefly,
        planner.pause_for_long,
        planner.kill,
        planner.close,
        planner.add_partitions,
        planner.create_topic,
        planner.slow_listener,
    ]
    planner.rng.shuffle(blocks)
    for block in blocks:
        block()
        planner.now += planner.rng.uniform(3, 6)
    planner.restart_all()
    return sorted(planner.steps)


@dataclass
class _Planner:
    """Plans block after block, of which each begins at `now`; they may overlap."""

    rng: random.Random
    now: float = 1.0
    steps: list[Step] = field(default_factory=list)
    running: list[str] = field(default_factory=first_members)
    starts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(first_members(), 0.0))
    paused: str = ""
    paused_until: float = 0.0

    def add(self) -> None:
        self._start(self.now)

    def pause_briefly(self) -> None:
        self._pause(self.rng.uniform(1, SESSION_SECONDS / 2))

    def pause_for_long(self) -> None:
        self._pause(SESSION_SECONDS + self.rng.uniform(2, 4))

    def kill(self) -> None:
        self._end("kill", self._choose())
        self._start(self.now + self.rng.uniform(1, SESSION_SECONDS + 2))

    def close(self) -> None:
        self._end("close", self._choose())

    def add_partitions(self) -> None:
        self.steps.append(Step(self.now, "add_partitions"))

    def create_topic(self) -> None:
        self.steps.append(Step(self.now, "create_topic"))

    def slow_listener(self) -> None:
        """A listener that may take longer than the session, in a rebalance for a member that ends and returns."""
        slow = self._choose()
        self.steps.append(Step(self.now, "slow", slow, self.rng.uniform(2, SESSION_SECONDS + 2)))
        self._end("close", self._choose(besides=slow), after=0.5)
        self._start(self.now + 1.5)

    def restart_all(self) -> None:
        """One member after the other ends, and a new one starts."""
        self.now = max(self.now, self.paused_until + 1)
        for member in self.running.copy():
            self._end("close", member)
            self._start(self.now + 0.5)
            self.now += 2

    def _choose(self, besides: str = "") -> str:
        """A member that runs by now, is not paused and is not `besides`; waits until there is one."""
        while True:
            unsuitable = {besides, self.paused if self.now <= self.paused_until else ""}
            if suitable := [each for each in self.running if each not in unsuitable and self.starts[each] < self.now]:
                return self.rng.choice(suitable)
            self.now += 1

    def _pause(self, seconds: float) -> None:
        self.now = max(self.now, self.paused_until + 1)  # one at a time
        self.paused, self.paused_until = self._choose(), self.now + seconds
        self.steps += [Step(self.now, "pause", self.paused), Step(self.paused_until, "resume", self.paused)]

    def _start(self, at: float) -> None:
        name = f"m{len(self.starts) + 1}"
        self.starts[name] = at
        self.running.append(name)
        self.steps.append(Step(at, "start", name))

    def _end(self, action: Action, member: str, after: float = 0.0) -> None:
        self.running.remove(member)
        self.steps.append(Step(self.now + after, action, member))

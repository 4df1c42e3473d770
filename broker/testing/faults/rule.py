"""What the rules of requests and of the disk share: hits, a limit, chance, removal, and a text for people."""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.randomness import SeededRandomness, SystemRandomness
from odradek.broker.testing.faults import arguments

__tracebackhide__ = True  # pytest shows the line of the test, and none of this module


class Rule:
    """A fault that a test has made.

    `hits` is the number of requests or disk operations that it has changed. After `times` hits it changes nothing any
    more. With a `probability` below 1 it decides by chance; the same `seed` gives the same decisions. A test whose rule
    was never hit has not tested what it says, so the pytest plugin fails it, unless the rule is `optional`.

    `str(rule)` is a sentence, such as
    `fail Produce with NOT_LEADER_OR_FOLLOWER (topic=orders, partition=0, times=2): 0 hits`.
    """

    def __init__(
        self,
        action: str,
        *,
        times: int | None = None,
        probability: float = 1.0,
        seed: int | None = None,
        optional: bool = False,
    ) -> None:
        """`action` is the beginning of the text. Raises ValueError for a number that makes no sense."""
        self.hits = 0
        self.optional = optional
        self.on_remove: Callable[[Rule], None] = _ignore
        self._action = action
        self._times = None if times is None else arguments.whole_number("times", times, 1)
        self._probability = arguments.share("probability", probability)
        self._seed = seed
        self._randomness = SystemRandomness() if seed is None else SeededRandomness(seed)

    def __str__(self) -> str:
        limits = {
            "times": self._times,
            "probability": None if self._probability == 1 else self._probability,
            "seed": self._seed,
        }
        given = [f"{name}={value}" for name, value in {**self.filters, **limits}.items() if value is not None]
        details = f" ({', '.join(given)})" if given else ""
        return f"{self._action}{details}: {self.hits} {'hit' if self.hits == 1 else 'hits'}"

    def __repr__(self) -> str:
        return f"<{self}>"

    @property
    def filters(self) -> dict[str, object]:
        """What the rule is limited to, by the names of its arguments; None for no limit."""
        return {}

    @property
    def is_spent(self) -> bool:
        """Whether the rule has been hit `times` times."""
        return self._times is not None and self.hits >= self._times

    def take(self) -> bool:
        """Decide whether the rule changes a request or operation that it fits, and count it if so."""
        if self.is_spent or (self._probability < 1 and self._randomness.random() >= self._probability):
            return False
        self.hits += 1
        return True

    def give_back(self) -> None:
        """Undo one `take`: the answer turned out to have nothing to change."""
        self.hits -= 1

    def remove(self) -> None:
        """End the rule: nothing is changed any more, and what it holds back goes on. A second call has no effect."""
        self.on_remove(self)

    def release(self) -> None:
        """Let go of what the rule holds back. Called when it has been removed."""


def _ignore(_: Rule) -> None:
    """Do nothing, for a rule that belongs to no broker."""

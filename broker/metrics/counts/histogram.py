"""A histogram of durations with quantiles of the last minutes.

Durations are recorded many at a time: `sorted` runs in C, and bisection counts the share of each bucket. That is 0.1 µs
a duration; finding the bucket of each one costs twice as much. Buckets are eighths of an octave from 1 µs to 1,000 s:
a quantile is within 5 % of the exact one.

The weight of a duration halves every 46 s, as in Kafka's histograms (exponential decay with alpha 0.015 a second).
`count` and `sum` never decay.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

HALF_LIFE_SECONDS: Final = 46.2
_OCTAVES: Final = 30
_STEPS: Final = 8
_UPPER_BOUNDS: Final = [1e-6 * 2 ** (step / _STEPS) for step in range(_OCTAVES * _STEPS)] + [float("inf")]
_FADED: Final = 1e-3  # a bucket with less than this is empty


class DurationHistogram:
    """Durations in seconds."""

    __slots__ = ("_weights", "count", "sum")

    def __init__(self) -> None:
        self._weights = [0.0] * len(_UPPER_BOUNDS)
        self.count = 0
        self.sum = 0.0

    def record_all(self, durations: Iterable[float]) -> None:
        """Count each of `durations`."""
        ascending = sorted(durations)
        self.count += len(ascending)
        self.sum += sum(ascending)
        start = bucket = 0
        while start < len(ascending):
            bucket = bisect_left(_UPPER_BOUNDS, ascending[start], bucket)
            end = bisect_right(ascending, _UPPER_BOUNDS[bucket], start)
            self._weights[bucket] += end - start
            start = end

    def record_none(self, count: int) -> None:
        """Count `count` durations of 0."""
        self.count += count
        self._weights[0] += count

    def add(self, other: DurationHistogram) -> None:
        """Add all durations of `other`."""
        self.count += other.count
        self.sum += other.sum
        self._weights = [own + others for own, others in zip(self._weights, other._weights, strict=True)]

    def fade(self, seconds: float) -> None:
        """Reduce the weights by the decay of `seconds`, the time since the last call."""
        factor = 0.5 ** (seconds / HALF_LIFE_SECONDS)
        self._weights = [weight * factor if weight > _FADED else 0.0 for weight in self._weights]

    def quantiles(self, wanted: Sequence[float]) -> list[float]:
        """Return the durations at the `wanted` fractions, in ascending order; all are 0 without recent durations."""
        found = []
        bucket = 0
        below = self._weights[0]
        total = sum(self._weights)
        for fraction in wanted:
            while below < fraction * total and bucket < len(self._weights) - 1:
                bucket += 1
                below += self._weights[bucket]
            found.append(_middle(bucket))
        return found


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    lower = _UPPER_BOUNDS[bucket - 1]
    return lower * 2 ** (0.5 / _STEPS)

"""Percentiles of many durations in bounded memory: a histogram whose buckets grow by 1.09 % each, as in HdrHistogram.

A duration of t ms is counted in bucket floor(64 · log2(1000 t)), from 1 µs up. A percentile is the upper bound of its
bucket, so it is at most 1.09 % above the exact one, and never below it. An hour is in bucket 2018, so there are about
two thousand buckets at most. Count, sum and maximum are exact.
"""

from __future__ import annotations

from collections import Counter
from math import ceil, log2

PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}

_BUCKETS_PER_DOUBLING = 64


class Latencies:
    """Counts durations in ms."""

    __slots__ = ("_buckets", "count", "max", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.max = 0.0
        self._buckets: Counter[int] = Counter()

    def add(self, duration_ms: float) -> None:
        self.count += 1
        self.sum += duration_ms
        self.max = max(self.max, duration_ms)
        self._buckets[int(log2(max(duration_ms * 1000, 1)) * _BUCKETS_PER_DOUBLING)] += 1

    @property
    def mean(self) -> float:
        """The arithmetic mean; 0 without durations."""
        return self.sum / self.count if self.count else 0.0

    def percentile(self, share: float) -> float:
        """Return the duration in ms that a `share` (0 to 1) of all did not exceed; 0 without durations."""
        rank = ceil(share * self.count)
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                bound: float = 2 ** ((bucket + 1) / _BUCKETS_PER_DOUBLING) / 1000
                return min(bound, self.max)
        return 0.0

    def summary(self) -> dict[str, float]:
        """Return mean, percentiles and maximum in ms, for JSON."""
        percentiles = {name: self.percentile(share) for name, share in PERCENTILES.items()}
        return {name: round(ms, 3) for name, ms in {"mean": self.mean, **percentiles, "max": self.max}.items()}

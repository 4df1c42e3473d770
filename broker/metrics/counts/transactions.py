"""The counters of transactions: checks of batches on leaders, ends of transactions on coordinators."""

from __future__ import annotations

from collections import deque
from typing import Final

from odradek.broker.metrics.counts.histogram import DurationHistogram

_RATE_WINDOW_SECONDS: Final = 30.0  # Kafka's metrics.sample.window.ms


class TransactionCounts:
    """Counts since the start; times in seconds. The hot paths add to the attributes, which stay 0 without transactions.

    - `verified` has the time of each check of a partition's first batch of a transaction, `verification_failures` the
      checks that refused the batch or had no answer.
    - `completed` has the time of each transaction from its decision until all markers are written.
    - `timed_out` counts transactions that were aborted because they exceeded their time limit.
    """

    def __init__(self) -> None:
        self.verified = DurationHistogram()
        self.verification_failures = 0
        self.completed = DurationHistogram()
        self.timed_out = 0
        self._samples: deque[tuple[float, int]] = deque()

    def tick(self, now: float, elapsed: float) -> None:
        """Decay old durations and sample for the rate: every few seconds, `elapsed` seconds after the last call."""
        self.verified.fade(elapsed)
        self.completed.fade(elapsed)
        while len(self._samples) > 1 and self._samples[1][0] <= now - _RATE_WINDOW_SECONDS:
            self._samples.popleft()
        self._samples.append((now, self.timed_out))

    def timeout_rate(self, now: float) -> float:
        """Return the timed-out transactions a second, over about the last half minute; 0 before `tick`."""
        if not self._samples:
            return 0.0
        since, timed_out = self._samples[0]
        return (self.timed_out - timed_out) / max(now - since, 1.0)

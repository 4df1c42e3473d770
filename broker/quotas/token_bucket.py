"""The token bucket of controller mutations (KIP-599; Kafka's `TokenBucket`).

Tokens flow in at `limit` a second, up to what flows in during all windows together. Each mutation takes one. A request
may start while there are no fewer than 0 tokens, and may then take any number: so a topic with more partitions than the
bucket holds can be created, and the next request waits until the bucket is at 0 again. A new bucket is full.
"""

from __future__ import annotations

from odradek.broker.quotas.samples import Windows


class TokenBucket:
    """One bucket. `limit` (tokens a second, above 0) may be changed at any time."""

    __slots__ = ("_at", "_tokens", "_windows", "limit")

    def __init__(self, windows: Windows, limit: float, now: float) -> None:
        self.limit = limit
        self._windows = windows
        self._tokens = windows.total * limit
        self._at = now

    def tokens(self, now: float) -> float:
        """Return the tokens at `now`; negative: as many are owed."""
        full = self._windows.total * self.limit
        self._tokens = min(full, self._tokens + self.limit * (now - self._at))
        self._at = now
        return self._tokens

    def take(self, count: float, now: float) -> None:
        """Take `count` tokens, also those that are not there."""
        self._tokens = self.tokens(now) - count

    def wait(self, now: float) -> float:
        """Return the seconds until there are 0 tokens; 0 if there are."""
        return max(0.0, -self.tokens(now) / self.limit)

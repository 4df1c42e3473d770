"""The use that one client makes of one quota, and the time for which it must wait when it is over it.

If the measured rate is O and the limit T over a span of W seconds, a pause of X brings the rate down to T when
O · W / (W + X) = T, so X = (O - T) / T · W: Kafka's `QuotaUtils.throttleTime`. Only the times of request quotas are
bounded, by one window (`ClientRequestQuotaManager`). A limit may change at any time; what was measured stays.
"""

from __future__ import annotations

from typing import Final

from odradek.broker.quotas.samples import Samples, Windows
from odradek.broker.quotas.token_bucket import TokenBucket

_LONGEST_MS: Final = 0x7FFF_FFFF  # an int32 in responses
_THROTTLE_WINDOWS: Final = Windows(2, 30.0)  # of Kafka's averages: metrics.num.samples, metrics.sample.window.ms


class Usage:
    """A measured rate and its limit. `used_at` is the time of the last call."""

    __slots__ = ("_blocked_until", "_longest_ms", "_samples", "_throttles", "limit", "used_at")

    def __init__(self, windows: Windows, limit: float, now: float, *, longest_ms: int = _LONGEST_MS) -> None:
        self.limit = limit
        self.used_at = now
        self._blocked_until = now
        self._longest_ms = longest_ms
        self._samples = Samples(windows)
        self._throttles: Samples | None = None

    def charge(self, value: float, now: float) -> int:
        """Record a value, and return the throttle time in milliseconds; 0 within the limit."""
        self._samples.record(value, now)
        return self.throttle_ms(now)

    def charge_unchecked(self, value: float, now: float) -> None:
        """Record a value that the next `charge` or `throttle_ms` counts; a negative one takes back an earlier one."""
        self._samples.record(value, now)

    @property
    def most_at_once(self) -> float:
        """The largest value that is not over the limit by itself, if nothing else was recorded."""
        windows = self._samples.windows
        return self.limit * max(1, windows.number - 1) * windows.seconds

    def borrow(self, value: float, now: float) -> None:
        """Record a value above `most_at_once`; until the limit has made up for it, `throttle_ms` is above 0."""
        self._samples.record(value, now)
        self._blocked_until = now + value / self.limit

    def throttle_ms(self, now: float) -> int:
        """Return the throttle time for what was recorded, in milliseconds."""
        rate, limit = self._samples.rate(now), self.limit
        seconds = max(self._blocked_until - now, 0.0)
        if rate > limit:
            seconds = max(seconds, (rate - limit) / limit * self._samples.span(now))
        return min(rounded_ms(seconds), self._longest_ms)

    def record_throttle(self, milliseconds: int, now: float) -> None:
        """Record that the client was throttled, for `average_throttle_ms`."""
        if self._throttles is None:
            self._throttles = Samples(_THROTTLE_WINDOWS)
        self._throttles.record(milliseconds, now)

    def rate(self, now: float) -> float:
        """Return the measured rate, per second."""
        return self._samples.rate(now)

    def average_throttle_ms(self, now: float) -> float:
        """Return the mean of the throttle times of the last minute; 0 without any."""
        return 0.0 if self._throttles is None else self._throttles.average(now)


class MutationUsage(Usage):
    """The use of a token bucket; `rate` is that of the mutations."""

    __slots__ = ("_bucket",)

    def __init__(self, windows: Windows, limit: float, now: float) -> None:
        super().__init__(windows, limit, now)
        self._bucket = TokenBucket(windows, limit, now)

    def charge(self, value: float, now: float) -> int:
        self.charge_unchecked(value, now)
        return self.throttle_ms(now)

    def charge_unchecked(self, value: float, now: float) -> None:
        super().charge_unchecked(value, now)
        self._bucket.limit = self.limit
        self._bucket.take(value, now)

    def throttle_ms(self, now: float) -> int:
        self._bucket.limit = self.limit
        return min(rounded_ms(self._bucket.wait(now)), _LONGEST_MS)

    def tokens(self, now: float) -> float:
        """Return the tokens that are left; negative: as many are owed."""
        self._bucket.limit = self.limit
        return self._bucket.tokens(now)


def rounded_ms(seconds: float) -> int:
    """Return milliseconds rounded as Java's `Math.round` does; huge times are cut to an int32."""
    return min(int(min(seconds, 1e9) * 1000 + 0.5), _LONGEST_MS)

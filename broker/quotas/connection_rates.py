"""The rates at which connections are accepted (KIP-612; Kafka's `ConnectionQuotas`).

| rate over | a new connection |
|---|---|
| `max.connection.creation.rate`, of the broker or a listener | is served; the next waits for the throttle time |
| the quota `connection_creation_rate` of its address | is not served, and closed after the throttle time |

A throttle time is at most one window. A refused connection does not count against the address, so that a client which
tries again and again is served at its rate. Addresses are kept only if they have a quota, `MOST_ADDRESSES` at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odradek.broker.quotas.entities import CONNECTION_CREATION_RATE, IP, Entity, canonical_address
from odradek.broker.quotas.samples import Windows
from odradek.broker.quotas.usage import Usage

MOST_ADDRESSES: Final = 10_000
IDLE_SECONDS: Final = 3600.0


class CreationRate:
    """The rate of new connections of a broker or of a listener; `limit` is in connections a second (above 0)."""

    def __init__(self, windows: Windows, limit: float, now: float) -> None:
        self._usage = Usage(windows, limit, now, longest_ms=_window_ms(windows))

    def record(self, limit: float, now: float) -> int:
        """Count a connection; return the milliseconds until the next one may be accepted."""
        self._usage.limit = limit
        return self._usage.charge(1, now)

    def rate(self, now: float) -> float:
        return self._usage.rate(now)


class AddressRates:
    """The rates of new connections of addresses with a quota."""

    def __init__(self, windows: Windows, *, most: int = MOST_ADDRESSES) -> None:
        self._windows = windows
        self._most = most
        self._limits: dict[str | None, float] = {}  # by address; None: every other address
        self._uses: dict[str, Usage] = {}  # the least recently used first

    def __bool__(self) -> bool:
        """Whether any address has a quota."""
        return bool(self._limits)

    def __len__(self) -> int:
        return len(self._uses)

    def set(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Replace all quotas; those of entities that are not addresses are ignored."""
        self._limits = {}
        for entity, values in quotas.items():
            limit = values.get(CONNECTION_CREATION_RATE, 0)
            if entity[0][0] == IP and limit > 0:
                name = entity[0][1]
                self._limits[name if name is None else canonical_address(name) or name] = limit
        if not self._limits:
            self._uses.clear()

    def record(self, address: str, now: float) -> int:
        """Count a new connection and return 0, or return its throttle time in milliseconds if it is over the quota."""
        limit = self._limits.get(address, self._limits.get(None))
        if limit is None:
            return 0
        usage = self._uses.pop(address, None)
        if usage is None:
            while self._uses and (len(self._uses) >= self._most or self._oldest().used_at <= now - IDLE_SECONDS):
                del self._uses[next(iter(self._uses))]
            usage = Usage(self._windows, limit, now, longest_ms=_window_ms(self._windows))
        self._uses[address] = usage
        usage.limit, usage.used_at = limit, now
        throttle_ms = usage.charge(1, now)
        if throttle_ms:
            usage.charge_unchecked(-1, now)
        return throttle_ms

    def _oldest(self) -> Usage:
        return self._uses[next(iter(self._uses))]


def _window_ms(windows: Windows) -> int:
    return int(windows.seconds * 1000)

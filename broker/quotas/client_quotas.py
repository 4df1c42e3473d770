"""The use of all clients with a quota, in bounded memory.

A client chooses its client id, and may invent one for each request. So at most `MOST` uses are kept: the least recently
used ones are removed first, and one that was not used for an hour is removed, too (Kafka has only the hour). A client
whose use was removed begins with a full quota, as it does under an invented client id. A quota for users limits
such a client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from odradek.broker.quotas.entities import CONTROLLER_MUTATION_RATE, REQUEST_PERCENTAGE, Entity
from odradek.broker.quotas.limits import Limits
from odradek.broker.quotas.samples import Windows
from odradek.broker.quotas.usage import MutationUsage, Usage

MOST: Final = 10_000
"""Uses that are kept: 22 MB with the default windows, if all of them are full."""
LONGEST_NAME: Final = 256
"""Characters of a name by which clients are told apart: a client id may have 32,767."""
IDLE_SECONDS: Final = 3600.0
"""Kafka's INACTIVE_SENSOR_EXPIRATION_TIME_SECONDS."""


class Use(NamedTuple):
    """A kept use, for metrics; `user` or `client_id` is empty if it does not matter."""

    kind: str
    user: str
    client_id: str
    usage: Usage


class ClientQuotas:
    """The quotas of clients and their use. `windows` are those of rates, `mutation_windows` of controller mutations."""

    def __init__(
        self,
        windows: Windows,
        mutation_windows: Windows,
        *,
        most: int = MOST,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._windows = windows
        self._mutation_windows = mutation_windows
        self._most = most
        self._idle_seconds = idle_seconds
        self._limits = Limits({})
        self._uses: dict[tuple[str, str, str], Usage] = {}  # by kind, user, client id; the least recently used first

    @property
    def windows(self) -> Windows:
        return self._windows

    def __bool__(self) -> bool:
        """Whether any client has a quota."""
        return bool(self._limits)

    def __len__(self) -> int:
        return len(self._uses)

    def set(self, quotas: Mapping[Entity, Mapping[str, float]]) -> None:
        """Replace the quotas of these entities. What clients have used stays; it is forgotten with the last quota."""
        for entity, values in quotas.items():
            self._limits.set(entity, values)
        if not self._limits:
            self._uses.clear()

    def forget(self) -> None:
        """Remove what clients have used: all begin with full quotas."""
        self._uses.clear()

    def find(self, kind: str, user: str, client_id: str, now: float) -> Usage | None:
        """Return what a client has used of its quota; None if it has no quota of this kind."""
        limit = self._limits.find(kind, user, client_id)
        if limit is None:
            return None
        key = kind, limit.user[:LONGEST_NAME], limit.client_id[:LONGEST_NAME]
        usage = self._uses.pop(key, None)
        if usage is None:
            self._forget(now)
            usage = self._new(kind, limit.value, now)
        self._uses[key] = usage
        usage.limit = limit.value
        usage.used_at = now
        return usage

    def uses(self, now: float) -> Iterator[Use]:
        """Yield what is kept, the least recently used first."""
        self._forget_idle(now)
        for (kind, user, client_id), usage in self._uses.items():
            yield Use(kind, user, client_id, usage)

    def _new(self, kind: str, limit: float, now: float) -> Usage:
        if kind == CONTROLLER_MUTATION_RATE:
            return MutationUsage(self._mutation_windows, limit, now)
        if kind == REQUEST_PERCENTAGE:
            return Usage(self._windows, limit, now, longest_ms=int(self._windows.seconds * 1000))
        return Usage(self._windows, limit, now)

    def _forget(self, now: float) -> None:
        """Make room for one more use."""
        self._forget_idle(now)
        while len(self._uses) >= self._most:
            del self._uses[next(iter(self._uses))]

    def _forget_idle(self, now: float) -> None:
        idle_since = now - self._idle_seconds
        while self._uses:
            key = next(iter(self._uses))
            if self._uses[key].used_at > idle_since:
                return
            del self._uses[key]

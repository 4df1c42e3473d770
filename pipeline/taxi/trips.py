"""Trips of two days, generated from a seed: the same seed gives the same trips, bytes and totals.

| aspect | distribution |
|---|---|
| drivers and zones | Pareto: a few have most of the trips |
| the hour of a trip | a daily curve: few at night, peaks in the morning and in the evening |
| late events | 5 % are sent up to `MAX_LATENESS_S` after the event, all others within seconds |
| corrections | 2 % of the trips are followed by a second record that corrects the fare |

A record's key is the driver, its value JSON: `{"trip": 7, "zone": "Z03", "at": 1740960000, "cents": 1250}`, `at` being
the second at which the trip ended, and `cents` its revenue, which a correction may reduce. Money is in whole cents, so
that sums are exact in any order.

The stream closes an hour when its watermark has passed it. A record of 0 cents, long after the last trip, closes all
hours. It is sent when all trips have been summed up, because records after it count as too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

FIRST_DAY = 1_740_960_000  # 2025-03-03T00:00:00Z: brokers refuse times in the future
DAYS = 2
MAX_LATENESS_S = 3600
WINDOW_S = 3600
CLOSING_S = 24 * 3600  # after the last day: beyond every window and every watermark
ZONES = 40

_DAY_S = 86_400
_HOURS = np.array([3, 2, 1, 1, 1, 2, 5, 9, 11, 8, 6, 6, 7, 7, 6, 7, 9, 12, 13, 11, 9, 8, 7, 5], dtype=float)
_LATE_SHARE = 0.05
_CORRECTED_SHARE = 0.02


class Event(NamedTuple):
    """A record and the time at which it is sent, in seconds since 1970."""

    sent: int
    key: bytes
    value: bytes


class Trips:
    """`count` trips, without corrections, from a seed. `totals`: revenue in cents by zone and start of the hour."""

    def __init__(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.count = count
        self._at = _times(random, count)
        self._zones = _pareto(random, count, ZONES)
        self._drivers = _pareto(random, count, max(count // 50, 1))
        self._cents = (500 + random.gamma(2.0, 600.0, count)).astype(np.int64)
        delays = random.integers(1, 10, count)
        is_late = random.random(count) < _LATE_SHARE
        delays[is_late] = random.integers(60, MAX_LATENESS_S, int(is_late.sum()))
        self._sent = self._at + delays
        self._add_corrections(random)
        self.totals = self._sum_up()

    def _add_corrections(self, random: np.random.Generator) -> None:
        corrected = np.flatnonzero(random.random(self.count) < _CORRECTED_SHARE)
        self.corrections = len(corrected)
        self._trips = np.concatenate([np.arange(self.count), corrected])
        # A correction belongs to the hour of its trip, so it must not be later than MAX_LATENESS_S.
        waits = random.integers(0, np.maximum(self._at[corrected] + MAX_LATENESS_S - self._sent[corrected], 1))
        self._sent = np.concatenate([self._sent, self._sent[corrected] + waits])
        changes = random.integers(-400, 400, len(corrected))
        self._cents = np.concatenate([self._cents, changes])
        self._at, self._zones, self._drivers = (
            np.concatenate([each, each[corrected]]) for each in (self._at, self._zones, self._drivers)
        )

    def _sum_up(self) -> dict[tuple[str, int], int]:
        windows = self._at // WINDOW_S * WINDOW_S
        keys, places = np.unique(np.stack([self._zones, windows]), axis=1, return_inverse=True)
        sums = np.zeros(keys.shape[1], dtype=np.int64)
        np.add.at(sums, places.reshape(-1), self._cents)
        return {(_zone(zone), int(window)): int(cents) for (zone, window), cents in zip(keys.T, sums, strict=True)}

    def __len__(self) -> int:
        """The number of records, with corrections and without the closing record."""
        return len(self._sent)

    @property
    def late(self) -> int:
        """The number of records that were sent a minute or more after their event."""
        return int(np.count_nonzero(self._sent - self._at >= 60))

    def events(self) -> Iterator[Event]:
        """Yield every record in the order of sending."""
        order = np.lexsort((np.arange(len(self._sent)), self._sent))
        columns = (self._sent, self._drivers, self._trips, self._zones, self._at, self._cents)
        for sent, driver, trip, zone, at, cents in zip(*(column[order].tolist() for column in columns), strict=True):
            value = f'{{"trip": {trip}, "zone": "{_zone(zone)}", "at": {at}, "cents": {cents}}}'
            yield Event(sent, b"driver-%d" % driver, value.encode())


def closing_event() -> Event:
    """Return the record that closes every hour."""
    at = FIRST_DAY + DAYS * _DAY_S + CLOSING_S
    return Event(at, b"closing", f'{{"trip": -1, "zone": "", "at": {at}, "cents": 0}}'.encode())


def _times(random: np.random.Generator, count: int) -> np.ndarray:
    """Return the times of trips, in seconds since 1970, from the daily curve."""
    hours = random.choice(24, count, p=_HOURS / _HOURS.sum())
    days = random.integers(0, DAYS, count)
    return FIRST_DAY + days * _DAY_S + hours * 3600 + random.integers(0, 3600, count)


def _pareto(random: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Return numbers below `size` from a Pareto distribution (shape 1.16: 20 % of them have 80 % of the trips)."""
    return (random.pareto(1.16, count) * size / 20).astype(np.int64) % size


def _zone(number: int) -> str:
    return f"Z{number:02d}"

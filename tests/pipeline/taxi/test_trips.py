"""The generator of trips: its records have the documented properties and the totals."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

from odradek.pipeline.taxi.revenue import WATERMARK_S
from odradek.pipeline.taxi.trips import FIRST_DAY, MAX_LATENESS_S, WINDOW_S, Trips, closing_event

COUNT = 20_000


def test_the_seed_determines_the_records() -> None:
    assert list(Trips(200, 7).events()) == list(Trips(200, 7).events())
    assert list(Trips(200, 7).events()) != list(Trips(200, 8).events())


def test_the_totals_are_those_of_the_records() -> None:
    trips = Trips(COUNT, 1)
    sums: Counter[tuple[str, int]] = Counter()
    for event in trips.events():
        trip = json.loads(event.value)
        sums[trip["zone"], trip["at"] // WINDOW_S * WINDOW_S] += trip["cents"]
    assert trips.totals == dict(sums)


def test_two_per_cent_are_corrected_and_five_are_late() -> None:
    trips = Trips(COUNT, 1)
    seen = Counter(json.loads(event.value)["trip"] for event in trips.events())
    assert sum(1 for times in seen.values() if times == 2) == trips.corrections == len(trips) - COUNT
    assert 0.015 < trips.corrections / COUNT < 0.025
    assert 0.05 < trips.late / COUNT < 0.08


def test_records_are_sent_in_order_and_never_later_than_the_watermark_allows() -> None:
    events = list(Trips(COUNT, 1).events())
    assert all(before.sent <= after.sent for before, after in pairwise(events))
    lateness = [event.sent - json.loads(event.value)["at"] for event in events]
    assert 0 < min(lateness) <= max(lateness) < MAX_LATENESS_S


def test_a_few_drivers_and_zones_have_most_of_the_trips_and_the_nights_are_quiet() -> None:
    events = list(Trips(COUNT, 1).events())
    drivers = Counter(event.key for event in events)
    busiest = sum(times for _, times in drivers.most_common(len(drivers) // 5))
    assert busiest > 0.5 * len(events)
    hours = Counter((json.loads(event.value)["at"] - FIRST_DAY) // 3600 % 24 for event in events)
    assert hours[18] > 5 * hours[3]


def test_the_closing_record_is_long_after_the_last_trip() -> None:
    newest = max(at for _, at in Trips(COUNT, 1).totals)
    assert json.loads(closing_event().value)["at"] > newest + WINDOW_S + WATERMARK_S

"""What is called around the state of a partition, for tracing."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.coordinator.runtime.coordinator_shard import CoordinatorShard
from odradek.broker.coordinator.runtime.events import Effects
from tests.coordinator.runtime.bench import DISK_FULL, Bench
from tests.coordinator.runtime.counters import Counters


class Recorder:
    """An observer: notes the calls, and passes them on."""

    def __init__(self, name: str, calls: list[str]) -> None:
        self.name = name
        self.calls = calls
        self.shard: Counters | None = None

    def __call__(self, inner: CoordinatorShard, shard: Counters) -> Any:
        self.inner = inner
        self.shard = shard
        return self

    def handle(self, key: str, event: Any, now_ms: int) -> Effects:
        self.calls.append(f"{self.name} handle {key}")
        return self.inner.handle(key, event, now_ms)

    def replay(self, *arguments: Any) -> None:
        self.calls.append(f"{self.name} replay")
        self.inner.replay(*arguments)

    def event_completed(self, key: str, effects: Effects, error: Any) -> None:
        self.calls.append(f"{self.name} completed {key} {error is None}")
        self.inner.event_completed(key, effects, error)

    def append_completed(self, *arguments: Any) -> Effects:
        self.calls.append(f"{self.name} follow-up")
        return self.inner.append_completed(*arguments)


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_an_event_passes_through_the_observers_the_outermost_first(bench: Bench) -> None:
    calls: list[str] = []
    inner, outer = Recorder("inner", calls), Recorder("outer", calls)
    bench.partition.observe([inner, outer])

    bench.add("a", 5)

    assert bench.replies == [5]
    assert bench.counters.counts == {"a": 5}
    assert calls == [
        f"{name} {call}" for call in ("handle a", "replay", "completed a True") for name in ("outer", "inner")
    ]
    assert inner.shard is outer.shard is bench.counters


async def test_an_append_that_fails_and_a_follow_up_pass_through(bench: Bench) -> None:
    calls: list[str] = []
    bench.partition.observe([Recorder("one", calls)])
    bench.writer.is_slow = True
    bench.add("a", 1, follow_up="more")

    await bench.end_append(DISK_FULL)

    assert calls == ["one handle a", "one completed a False", "one follow-up", "one completed a True"]


async def test_without_observers_nothing_is_passed_any_more(bench: Bench) -> None:
    calls: list[str] = []
    bench.partition.observe([Recorder("one", calls)])
    bench.partition.observe([])

    bench.add("a", 5)

    assert (bench.replies, calls) == ([5], [])

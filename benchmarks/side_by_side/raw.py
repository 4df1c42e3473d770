"""The broker alone: prepared requests over raw sockets, from a generator that costs very little.

Each connection of a produce load writes to a separate partition; each of a fetch load reads 64 MiB of the log
repeatedly, from the page cache. A goal is a ratio to Apache Kafka: a minimum for rates, otherwise a maximum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import Contest, Side, with_cpu
from benchmarks.side_by_side.results import Row, Sample

KIB = 1024
FILL_BYTES = 64 * KIB * KIB
FILL = (16, 1000)
"""Records and bytes of a value in each fetched batch of 16 KiB."""


class Produce(NamedTuple):
    """A load of Produce: connections, requests in flight on each, one batch in each request."""

    work: str
    connections: int
    in_flight: int
    records: int
    value_bytes: int
    goals: dict[str, float]


def _small(connections: int, in_flight: int, rate: float) -> Produce:
    goals = {"rate": rate, "cpu_us": 0.6, "p50_us": 0.8, "p99_us": 0.8}
    return Produce(f"produce 100 B, {connections}×{in_flight}", connections, in_flight, 1, 100, goals)


_LARGE_GOALS = {"mb_per_s": 0.85, "cpu_s_per_gb": 0.95, "p50_us": 1.2, "p99_us": 0.9}

PRODUCES = [
    _small(1, 1, 1.2),
    _small(8, 1, 1.2),
    _small(8, 8, 2.0),
    _small(64, 1, 0.9),
    _small(64, 8, 1.2),
    Produce(
        "produce 16 KiB batches, 4×4", 4, 4, 16, 1000,
        {"mb_per_s": 1.1, "cpu_s_per_gb": 0.7, "p50_us": 0.9, "p99_us": 0.8},
    ),
    Produce("produce 256 KiB batches, 4×1", 4, 1, 256, 1000, _LARGE_GOALS),
    Produce("produce 900 KB batches, 4×1", 4, 1, 900, 1000, _LARGE_GOALS),
]  # fmt: skip
"""16 KiB and 256 KiB are the batches of a Java producer with the default and with a large batch.size."""


class Fetch(NamedTuple):
    """A load of Fetch: requests for some bytes of each of some partitions, at successive offsets."""

    work: str
    connections: int
    partitions: int
    partition_bytes: int
    goals: dict[str, float]


FETCHES = [
    Fetch("fetch 1 MiB", 1, 1, 1024 * KIB, {"mb_per_s": 1.3, "cpu_s_per_gb": 0.6, "p50_us": 0.8, "p99_us": 0.7}),
    Fetch("fetch 4 × 1 MiB", 1, 4, 1024 * KIB, {"mb_per_s": 1.0, "cpu_s_per_gb": 1.1, "p50_us": 0.8, "p99_us": 0.7}),
    Fetch("fetch 16 KiB, 4 connections", 4, 1, 16 * KIB,
          {"mb_per_s": 1.7, "cpu_s_per_gb": 0.4, "p50_us": 0.8, "p99_us": 0.7}),
]  # fmt: skip


def _produces(contest: Contest, *, quick: bool) -> Iterator[Row]:
    for case in PRODUCES:
        if not quick or (case.connections, case.in_flight) in {(1, 1), (8, 8), (4, 4)}:
            yield _produce(contest, case)
    yield _unacknowledged(contest)


def _fetches(contest: Contest, *, quick: bool) -> Iterator[Row]:
    with filled(contest, 4) as topic:
        for wanted in FETCHES:
            if not quick or wanted.partitions == 1:
                yield _fetch(contest, wanted, topic)


def _latencies(contest: Contest, *, quick: bool) -> Iterator[Row]:
    yield _wake(contest, rounds=300 if quick else 2000)
    if not quick:
        yield _paced(contest)
        yield _light_beside_flood(contest)


@contextmanager
def _topic(contest: Contest, partitions: int) -> Iterator[str]:
    name = contest.new_topic(partitions)
    try:
        yield name
    finally:
        contest.delete_topic(name)


def _produce(contest: Contest, case: Produce) -> Row:
    batch = load.batch(case.records, case.value_bytes)

    def measure(side: Side) -> Sample:
        with contest.topic_of_a_round(side, case.connections) as topic:
            frames = [load.produce_frame(topic, [index], batch) for index in range(case.connections)]
            return loaded(contest, side, frames, case.connections, case.in_flight, len(batch))

    return contest.row("raw", case.work, measure, goals=case.goals)


def _unacknowledged(contest: Contest, connections: int = 8, together: int = 32) -> Row:
    """Measure small produces with acks=0: an acks=1 after 31 of them says how far the broker has come.

    Its latencies are those of 32 requests, and not reported.
    """
    batch = load.batch(1, 100)

    def measure(side: Side) -> Sample:
        with contest.topic_of_a_round(side, connections) as topic:
            frames = []
            for index in range(connections):
                acknowledged = load.produce_frame(topic, [index], batch)
                load.accepted_bytes(side.port, acknowledged)  # refused, an acks=0 would close the connection
                frames.append(load.produce_frame(topic, [index], batch, acks=0) * (together - 1) + acknowledged)
            send = partial(
                load.run, side.port, frames,
                connections=connections, in_flight=2, seconds=contest.seconds, together=together,
            )  # fmt: skip
            sample = with_cpu(side, send)
            return {figure: sample[figure] for figure in ("rate", "cpu_us")}

    return contest.row("raw", f"produce 100 B, acks=0, {connections} connections", measure)


def _fetch(contest: Contest, case: Fetch, topic: str) -> Row:
    frames = walk_frames(case, topic)
    size = case.partitions * case.partition_bytes

    def measure(side: Side) -> Sample:
        return loaded(contest, side, frames, case.connections, 1, size, walk=True)

    return contest.row("raw", case.work, measure, goals=case.goals)


def walk_frames(case: Fetch, topic: str, first: int = 0) -> list[bytes]:
    """Return Fetches from one end of a topic of `filled` to the other, of `case.partitions` from `first` on."""
    step = case.partition_bytes // len(load.batch(*FILL)) * FILL[0]
    offsets = range(0, _fill_batches() * FILL[0] - 2 * step, step)  # each has as many bytes after it as are requested
    return [
        load.fetch_frame(topic, range(first, first + case.partitions), case.partition_bytes, offset)
        for offset in offsets
    ]


def loaded(
    contest: Contest,
    side: Side,
    frames: Sequence[bytes],
    connections: int,
    in_flight: int,
    request_bytes: int,
    *,
    walk: bool = False,
    tls_port: int | None = None,
) -> Sample:
    """Run a load; report large requests by their bytes, small ones by their number."""
    send = partial(
        load.run, side.port, frames,
        connections=connections, in_flight=in_flight, seconds=contest.seconds, walk=walk, tls_port=tls_port,
    )  # fmt: skip
    return of_size(with_cpu(side, send), request_bytes)


def of_size(sample: Sample, request_bytes: int) -> Sample:
    """Return the figures of requests of this size: large ones by their bytes, small ones by their number."""
    if request_bytes >= 4 * KIB:
        rate, cpu_us = sample.pop("rate"), sample.pop("cpu_us")
        sample["mb_per_s"] = rate * request_bytes / 1e6
        sample["cpu_s_per_gb"] = cpu_us / request_bytes * 1e3
    del sample["cpu_s"]
    return sample


@contextmanager
def filled(contest: Contest, partitions: int) -> Iterator[str]:
    """Create a topic with the same batches of 16 KiB in each of its partitions."""
    with _topic(contest, partitions) as topic:
        for side in contest.sides:
            for index in range(partitions):
                load.repeat(side.port, load.produce_frame(topic, [index], load.batch(*FILL)), _fill_batches())
        yield topic


def _fill_batches() -> int:
    return FILL_BYTES // len(load.batch(*FILL))


def _wake(contest: Contest, rounds: int) -> Row:
    produced = dict.fromkeys((side.name for side in contest.sides), 0)
    with _topic(contest, 1) as topic:
        fetch = load.fetch_frame(topic, [0], KIB * KIB, load.OFFSET_MARK)
        produce = load.produce_frame(topic, [0], load.batch(1, 100))

        def measure(side: Side) -> Sample:
            next_offset = produced[side.name]
            produced[side.name] += rounds
            waking = partial(load.wake, side.port, fetch, produce, next_offset=next_offset, rounds=rounds)
            sample = with_cpu(side, waking)
            del sample["cpu_s"]
            return sample

        goals = {"cpu_us": 0.4, "p50_us": 0.6, "p99_us": 0.5}
        return contest.row("raw", "end to end, acks=1, a parked fetch", measure, goals=goals)


def _paced(contest: Contest, rate: int = 5000) -> Row:
    with _topic(contest, 8) as topic:
        frames = [load.produce_frame(topic, [index], load.batch(1, 100)) for index in range(8)]

        def measure(side: Side) -> Sample:
            send = partial(
                load.run, side.port, frames,
                connections=8, in_flight=8, seconds=contest.seconds, rate=rate,
            )  # fmt: skip
            sample = with_cpu(side, send)
            del sample["rate"], sample["cpu_s"]
            return sample

        return contest.row("raw", f"produce 100 B, paced at {rate:,} a second", measure)


def _light_beside_flood(contest: Contest, rate: int = 500) -> Row:
    """Measure a producer of 500 small requests a second while batches of 900 KB arrive on four connections."""
    with _topic(contest, 5) as topic:
        flood_batch = load.batch(900, 1000)
        flood = [load.produce_frame(topic, [index], flood_batch) for index in range(4)]
        light = [load.produce_frame(topic, [4], load.batch(1, 100))]

        def measure(side: Side) -> Sample:
            seconds = contest.seconds
            with load.start(side.port, flood, connections=4, in_flight=1, seconds=seconds + 1) as beside:
                time.sleep(0.5)  # until the load has started
                sample = load.run(side.port, light, connections=1, in_flight=8, seconds=seconds - 0.5, rate=rate)
                beside.result(60)
            return {name: sample[name] for name in ("p50_us", "p99_us")}

        goals = {"p50_us": 0.2, "p99_us": 0.1}
        return contest.row("raw", f"{rate} small produces a second beside a flood of 900 KB", measure, goals=goals)


PARTS = {"produce": _produces, "fetch": _fetches, "latency": _latencies}

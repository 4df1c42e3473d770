"""What becomes of speed when something grows: partitions, connections, the size of the log, groups.

Each series measures the same small work while one thing grows by powers of ten. A line that stays level is what is
wanted: no cost may grow with the log, nor a request's with partitions that it does not name.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import Contest, Side, with_cpu
from benchmarks.side_by_side.results import Row, Sample

PARTITIONS = (1, 10, 100, 1000, 5000)
CONNECTIONS = (1, 10, 100, 1000)
LOG_MB = (10, 100, 1000, 10_000)
SEGMENT_BYTES = 16 << 20
PARTITIONS_A_TOPIC = 1000

Measure = Callable[[Side], Sample]

_RECORD = (1, 100)
_LARGE_BATCH = (900, 1000)


def rows(contest: Contest, *, quick: bool) -> Iterator[Row]:
    yield from _partitions(contest, PARTITIONS[:3] if quick else PARTITIONS)
    yield from _connections(contest, CONNECTIONS[:3] if quick else CONNECTIONS)
    yield from _log_size(contest, LOG_MB[:2] if quick else LOG_MB)


def _partitions(contest: Contest, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Produce to eight partitions while the broker has more and more others."""
    worked_on = contest.new_topic(8)
    frames = [load.produce_frame(worked_on, [index], load.batch(*_RECORD)) for index in range(8)]
    others: list[str] = []
    count = 0
    for size in sizes:
        while count < size:
            more = min(size - count, PARTITIONS_A_TOPIC)
            others.append(contest.new_topic(more))
            count += more
        yield contest.row(
            "growth", f"produce 100 B, 8×1, with {size:,} other partitions", _small_load(contest, frames, 8), x=size
        )
    for topic in [worked_on, *others]:
        contest.delete_topic(topic)


def _connections(contest: Contest, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Produce on eight connections while more and more others are idle."""
    topic = contest.new_topic(8)
    frames = [load.produce_frame(topic, [index], load.batch(*_RECORD)) for index in range(8)]
    for size in sizes:
        measure = partial(_with_idle_connections, _small_load(contest, frames, 8), size)
        yield contest.row("growth", f"produce 100 B, 8×1, with {size:,} idle connections", measure, x=size)
    contest.delete_topic(topic)


def _with_idle_connections(measure: Measure, count: int, side: Side) -> Sample:
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", side.port)))
        return measure(side)


def _log_size(contest: Contest, sizes: tuple[int, ...]) -> Iterator[Row]:
    """Produce to, and fetch from the middle of, a log that grows; its segments are of 16 MiB."""
    topic = contest.new_topic(1, {"segment.bytes": str(SEGMENT_BYTES)})
    small = [load.produce_frame(topic, [0], load.batch(*_RECORD))]
    large = load.batch(*_LARGE_BATCH)
    written = 0
    for size in sizes:
        times = (size * 1_000_000 - written) // len(large)
        for side in contest.sides:
            load.repeat(side.port, load.produce_frame(topic, [0], large), times)
        written += times * len(large)
        yield contest.row("growth", f"produce 100 B, 1×1, behind {size:,} MB", _small_load(contest, small, 1), x=size)
        middle = written // len(large) // 2 * _LARGE_BATCH[0]
        fetch = [load.fetch_frame(topic, [0], 16 << 10, middle)]
        yield contest.row("growth", f"fetch 16 KiB, 1×1, amid {size:,} MB", _small_load(contest, fetch, 1), x=size)
    contest.delete_topic(topic)


def _small_load(contest: Contest, frames: list[bytes], connections: int) -> Measure:
    def measure(side: Side) -> Sample:
        sample = with_cpu(
            side,
            lambda: load.run(side.port, frames, connections=connections, in_flight=1, seconds=contest.seconds / 2),
        )
        del sample["cpu_s"]
        return sample

    return measure

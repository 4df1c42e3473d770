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
LOG_MB = (10, 100, 1000, 5000, 20_000)
GROUPS = (1, 10, 100, 1000)
SEGMENT_BYTES = 16 << 20
PARTITIONS_A_TOPIC = 1000

Measure = Callable[[Side], Sample]

_RECORD = (1, 100)
_BATCH = (16, 1000)
_LARGE_BATCH = (900, 1000)


def _partitions(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce to eight partitions while the broker has more and more others."""
    worked_on = contest.new_topic(8)
    frames = [load.produce_frame(worked_on, [index], load.batch(*_RECORD)) for index in range(8)]
    others: list[str] = []
    count = 0
    for size in PARTITIONS[:3] if quick else PARTITIONS:
        while count < size:
            more = min(size - count, PARTITIONS_A_TOPIC)
            others.append(contest.new_topic(more))
            count += more
        yield contest.row(
            "growth", f"produce 100 B, 8×1, with {size:,} other partitions", _small_load(contest, frames, 8), x=size
        )
    for topic in [worked_on, *others]:
        contest.delete_topic(topic)


def _connections(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce on eight connections while more and more others are idle."""
    topic = contest.new_topic(8)
    frames = [load.produce_frame(topic, [index], load.batch(*_RECORD)) for index in range(8)]
    for size in CONNECTIONS[:3] if quick else CONNECTIONS:
        measure = partial(_with_idle_connections, _small_load(contest, frames, 8), size)
        yield contest.row("growth", f"produce 100 B, 8×1, with {size:,} idle connections", measure, x=size)
    contest.delete_topic(topic)


def _with_idle_connections(measure: Measure, count: int, side: Side) -> Sample:
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", side.port)))
        return measure(side)


def _log_size(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce to, and fetch from within, a log that grows; its segments are of 16 MiB."""
    topic = contest.new_topic(1, {"segment.bytes": str(SEGMENT_BYTES)})
    small = [load.produce_frame(topic, [0], load.batch(*_RECORD))]
    size_before = 0
    for size in LOG_MB[:3] if quick else LOG_MB:
        fetches = {side.name: _grow(side, topic, size - size_before) for side in contest.sides}
        size_before = size
        yield contest.row("growth", f"produce 100 B, 1×1, behind {size:,} MB", _small_load(contest, small, 1), x=size)
        yield contest.row("growth", f"fetch 16 KiB, 1×1, amid {size:,} MB", _fetch_load(contest, fetches), x=size)
    contest.delete_topic(topic)


def _grow(side: Side, topic: str, megabytes: int) -> bytes:
    """Append so much; returns a Fetch of the one batch of 16 KiB that is in the middle of it."""
    large = load.produce_frame(topic, [0], load.batch(*_LARGE_BATCH))
    times = megabytes * 1_000_000 // len(large) // 2
    load.repeat(side.port, large, times)
    with load.Asker(side.port) as asker:
        _, answer = asker.accepted(load.produce_frame(topic, [0], load.batch(*_BATCH)))
    load.repeat(side.port, large, times)
    return load.fetch_frame(topic, [0], 16 << 10, answer.responses[0].partition_responses[0].base_offset)


def _groups(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Commit offsets of eight groups while the broker has more and more others."""
    topic = contest.new_topic(1)
    frames = [load.offset_commit_frame(f"worked-on-{number}", topic) for number in range(8)]
    count = 0
    for size in GROUPS[:3] if quick else GROUPS:
        for side in contest.sides:
            _commit(side, topic, range(count, size))
        count = size
        yield contest.row(
            "growth", f"OffsetCommit, 8×1, with {size:,} other groups", _small_load(contest, frames, 8), x=size
        )
    contest.delete_topic(topic)


def _commit(side: Side, topic: str, numbers: range) -> None:
    with load.Asker(side.port) as asker:
        asker.accepted(load.find_coordinator_frame("other"))  # Kafka makes the offsets topic when it is asked
        for number in numbers:
            asker.accepted(load.offset_commit_frame(f"other-{number}", topic))


def _fetch_load(contest: Contest, fetches: dict[str, bytes]) -> Measure:
    """The fetch of each side: its log has offsets of its own."""
    return lambda side: _small_load(contest, [fetches[side.name]], 1)(side)


def _small_load(contest: Contest, frames: list[bytes], connections: int) -> Measure:
    def measure(side: Side) -> Sample:
        sample = with_cpu(
            side,
            lambda: load.run(side.port, frames, connections=connections, in_flight=1, seconds=contest.seconds / 2),
        )
        del sample["cpu_s"]
        return sample

    return measure


PARTS = {"partitions": _partitions, "connections": _connections, "log-size": _log_size, "groups": _groups}

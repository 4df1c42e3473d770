"""The cost of work while something grows: partitions, connections, the size of the log, groups.

| series | what grows | the work |
|---|---|---|
| partitions | other partitions of the broker | Produce of 100 B, 8×1 |
| connections | idle connections | the same |
| log-size | the log, in segments of 16 MiB | Produce of 100 B; Fetch of 16 KiB and ListOffsets, amid it |
| seek | the log, in segments of 64 MiB | Fetch of 16 KiB and ListOffsets, each at a random place of it |
| groups | other groups | OffsetCommit, 8×1 |
| metadata | partitions of the topic, or topics of one partition, that a request asks for | Metadata, 1×1 |
| wide | partitions that a request wants | Fetch, 1×1, of a batch of 100 B of each partition, or of one of them |

In each round the same work runs just before without growth: on a broker that has nothing else (`untouched_brokers`),
without idle connections, on the smallest log. The result is the ratio of both costs, so that other load on the machine
affects both. The goal is 1: no cost may grow with the log, and the cost of a request must not grow with partitions that
it does not name. Only in the last two series the request or its answer grows, too: each further partition or topic
should cost little.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.side_by_side import load, sparse_log
from benchmarks.side_by_side.contest import Contest, Side, with_cpu
from benchmarks.side_by_side.results import Row, Sample

PARTITIONS = (1, 100, 1000, 5000)
CONNECTIONS = (1, 100, 1000)
LOG_MB = (10, 1000, 5000, 20_000)
SEGMENTS = (1, 8, 64)
GROUPS = (1, 100, 1000)
ASKED = (1, 100, 1000)
SEGMENT_BYTES = 16 << 20
SEEK_SEGMENT_BYTES = 64 << 20
SEEKS = 8192
"""Requests that differ: more than any cache of positions holds, and few enough for the first round to read them all."""
PARTITIONS_A_TOPIC = 1000
WORKED_ON = 8

Measure = Callable[[Side], Sample]

_RECORD = (1, 100)
_BATCH = (16, 1000)
_GROWTH = {"cpu_us": "cpu_growth", "p50_us": "p50_growth"}


def _partitions(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce to eight partitions while the broker has more and more others."""
    with untouched_brokers(contest) as untouched:
        here, there = (_produced(each, each.new_topic(WORKED_ON)) for each in (contest, untouched))
        others: list[str] = []
        count = 0
        for size in _sizes(PARTITIONS, quick=quick):
            while count < size:
                more = min(size - count, PARTITIONS_A_TOPIC)
                others.append(contest.new_topic(more))
                count += more
            measure = beside(at(untouched, there), here)
            yield _row(contest, f"produce 100 B, 8×1, with {size:,} other partitions", measure, size)
        for topic in others:
            contest.delete_topic(topic)


def _connections(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce on eight connections while more and more others are idle."""
    topic = contest.new_topic(WORKED_ON)
    produced = _produced(contest, topic)
    for size in _sizes(CONNECTIONS, quick=quick):
        measure = beside(produced, partial(_with_idle_connections, produced, size))
        yield _row(contest, f"produce 100 B, 8×1, with {size:,} idle connections", measure, size)
    contest.delete_topic(topic)


def _with_idle_connections(measure: Measure, count: int, side: Side) -> Sample:
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(("127.0.0.1", side.port)))
        return measure(side)


def _log_size(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Produce to, fetch from within, and search logs of all sizes; they are there at once."""
    topics = {size: contest.new_topic(1, {"segment.bytes": str(SEGMENT_BYTES)}) for size in _sizes(LOG_MB, quick=quick)}
    middles = _fill(contest, topics)
    works: dict[str, Callable[[Side, str], bytes]] = {
        "produce 100 B, 1×1, behind {:,} MB": lambda _, topic: load.produce_frame(topic, [0], load.batch(*_RECORD)),
        "fetch 16 KiB, 1×1, amid {:,} MB": lambda side, topic: load.fetch_frame(
            topic, [0], 16 << 10, middles[side.name][topic]
        ),
        "fetch 16 KiB, read_committed, 1×1, amid {:,} MB": lambda side, topic: load.fetch_frame(
            topic, [0], 16 << 10, middles[side.name][topic], read_committed=True
        ),
        "ListOffsets by time, 1×1, amid {:,} MB": lambda _, topic: load.list_offsets_frame(topic, load.TIMESTAMP),
    }
    for work, frame in works.items():
        smallest = _asked(contest, frame, topics[min(topics)])
        for size, topic in topics.items():
            yield _row(contest, work.format(size), beside(smallest, _asked(contest, frame, topic)), size)
    for topic in topics.values():
        contest.delete_topic(topic)


def _fill(contest: Contest, topics: dict[int, str]) -> dict[str, dict[str, int]]:
    """Write the logs; return for each side the offsets of the one batch of 16 KiB in the middle of each."""
    sizes = {topic: size for size, topic in topics.items()}
    with contest.stopped():
        return {
            side.name: sparse_log.fill(side.server.log_dir, sizes, SEGMENT_BYTES, load.batch(*_BATCH))
            for side in contest.sides
        }


def _asked(contest: Contest, frame: Callable[[Side, str], bytes], topic: str) -> Measure:
    return lambda side: small_load(contest, [frame(side, topic)], side)


def _seek(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Fetch and search by time at random places of logs with more and more segments."""
    in_segment = SEEK_SEGMENT_BYTES // len(sparse_log.even_batch())
    configs = {"segment.bytes": str(SEEK_SEGMENT_BYTES)}
    topics = {size: contest.new_topic(1, configs) for size in _sizes(SEGMENTS, quick=quick)}
    with contest.stopped():
        for side in contest.sides:
            counts = {topic: size * in_segment for size, topic in topics.items()}
            sparse_log.fill_evenly(side.server.log_dir, counts, SEEK_SEGMENT_BYTES)
    works: dict[str, Callable[[str, int], bytes]] = {
        "fetch 16 KiB at random, 1×1, in {:,} × 64 MiB": lambda topic, offset: load.fetch_frame(
            topic, [0], 16 << 10, offset
        ),
        "ListOffsets by time at random, 1×1, in {:,} × 64 MiB": lambda topic, offset: load.list_offsets_frame(
            topic, load.TIMESTAMP + offset
        ),
    }
    for work, frame in works.items():
        seeks = {size: _sought(contest, partial(frame, topic), size, in_segment) for size, topic in topics.items()}
        for size, measure in seeks.items():
            yield _row(contest, work.format(size), beside(seeks[min(seeks)], measure), size)
    for topic in topics.values():
        contest.delete_topic(topic)


def _sought(contest: Contest, frame: Callable[[int], bytes], segments: int, in_segment: int) -> Measure:
    """Ask for random offsets, but none in the last batch of a segment, where a Fetch returns less than elsewhere."""
    chance = Random(segments)
    frames = []
    for _ in range(SEEKS):
        number = chance.randrange(segments) * in_segment + chance.randrange(in_segment - 1)
        frames.append(frame(number * sparse_log.EVEN_RECORDS + chance.randrange(sparse_log.EVEN_RECORDS)))
    return partial(small_load, contest, frames, connections=1)


def _groups(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Commit offsets of eight groups while the broker has more and more others."""
    with untouched_brokers(contest) as untouched:
        topic, topic_there = (each.new_topic(1) for each in (contest, untouched))
        here = partial(small_load, contest, _commits(topic))
        there = partial(small_load, untouched, _commits(topic_there))
        count = 0
        for side in untouched.sides:
            _commit(side, topic_there, range(1))
        for size in _sizes(GROUPS, quick=quick):
            for side in contest.sides:
                _commit(side, topic, range(count, size))
            count = size
            yield _row(
                contest, f"OffsetCommit, 8×1, with {size:,} other groups", beside(at(untouched, there), here), size
            )
        contest.delete_topic(topic)


def _commits(topic: str) -> list[bytes]:
    return [load.offset_commit_frame(f"worked-on-{number}", topic) for number in range(WORKED_ON)]


def _commit(side: Side, topic: str, numbers: range) -> None:
    with load.Asker(side.port) as asker:
        asker.accepted(load.find_coordinator_frame("other"))  # this request makes Kafka create the offsets topic
        for number in numbers:
            asker.accepted(load.offset_commit_frame(f"other-{number}", topic))


def _metadata(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Ask for topics with more and more partitions, then for more and more topics."""
    sizes = _sizes(ASKED, quick=quick)
    grown = {size: contest.new_topic(size) for size in sizes}
    names = [f"asked-{number}" for number in range(max(sizes))]
    for side in contest.sides:
        with load.Asker(side.port) as asker:
            asker.accepted(load.create_topics_frame(names))
    works = {
        "Metadata, 1×1, of a topic with {:,} partitions": {size: [topic] for size, topic in grown.items()},
        "Metadata, 1×1, of {:,} topics": {size: names[:size] for size in sizes},
    }
    for work, topics in works.items():
        asked = {size: partial(small_load, contest, [load.metadata_frame(each)]) for size, each in topics.items()}
        for size, measure in asked.items():
            yield _row(contest, work.format(size), beside(asked[min(asked)], measure), size)
    for topic in grown.values():
        contest.delete_topic(topic)
    for side in contest.sides:
        with load.Asker(side.port) as asker:
            asker.accepted(load.delete_topics_frame(names))


def _wide(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Fetch from more and more partitions with one batch each: all batches, or that of the last partition."""
    sizes = _sizes(ASKED, quick=quick)
    topic = contest.new_topic(max(sizes))
    for side in contest.sides:
        with load.Asker(side.port) as asker:
            asker.accepted(load.produce_frame(topic, range(max(sizes)), load.batch(*_RECORD)))
    works: dict[str, Callable[[int], Measure]] = {
        "Fetch, 1×1, of {:,} partitions with a batch each": lambda size: partial(
            small_load, contest, [load.fetch_from_frame(topic, dict.fromkeys(range(size), 0), 1 << 20)]
        ),
        "Fetch, 1×1, of {:,} partitions, one with a batch": lambda size: partial(
            small_load, contest, [load.fetch_from_frame(topic, _offsets(size), 1 << 20)]
        ),
        "Fetch, 1×1, session of {:,} partitions, one with a batch": lambda size: partial(
            _in_session, contest, load.fetch_from_frame(topic, _offsets(size), 1 << 20, session=(0, 0))
        ),
    }
    for work, asked in works.items():
        for size in sizes:
            yield _row(contest, work.format(size), beside(asked(min(sizes)), asked(size)), size)
    contest.delete_topic(topic)


def _offsets(partitions: int) -> dict[int, int]:
    """The end of each log, which holds one record, but its start in the last partition."""
    return dict.fromkeys(range(partitions), 1) | {partitions - 1: 0}


def _in_session(contest: Contest, first: bytes, side: Side) -> Sample:
    sample = with_cpu(side, partial(load.fetch_in_session, side.port, first, contest.seconds / 2))
    del sample["cpu_s"]
    return sample


def _sizes(sizes: Sequence[int], *, quick: bool) -> Sequence[int]:
    return sizes[:2] if quick else sizes


@contextmanager
def untouched_brokers(contest: Contest) -> Iterator[Contest]:
    """Run two more brokers, in which nothing grows."""
    with (
        TemporaryDirectory(prefix="untouched-") as directory,
        Contest(Path(directory), tree=contest.tree, rounds=contest.rounds, seconds=contest.seconds) as untouched,
    ):
        untouched.warm_up()
        yield untouched


def at(contest: Contest, measure: Measure) -> Measure:
    """Measure on the broker of that contest with the name of the side."""
    twins = {side.name: side for side in contest.sides}
    return lambda side: measure(twins[side.name])


def _produced(contest: Contest, topic: str) -> Measure:
    return partial(
        small_load, contest, [load.produce_frame(topic, [index], load.batch(*_RECORD)) for index in range(WORKED_ON)]
    )


def small_load(contest: Contest, frames: list[bytes], side: Side, connections: int | None = None) -> Sample:
    """Send each frame on a separate connection, or on each of so many connections all frames in succession."""
    sending = partial(
        load.run, side.port, frames,
        connections=connections or len(frames), in_flight=1, seconds=contest.seconds / 2, walk=connections is not None,
    )  # fmt: skip
    sample = with_cpu(side, sending)
    del sample["cpu_s"]
    return sample


def beside(smallest: Measure, measure: Measure) -> Measure:
    """Measure, and divide by the cost at the smallest size in the same round."""

    def both(side: Side) -> Sample:
        small, sample = smallest(side), measure(side)
        return sample | {growth: sample[figure] / small[figure] for figure, growth in _GROWTH.items()}

    return both


def _row(contest: Contest, work: str, measure: Measure, size: int) -> Row:
    return contest.row("growth", work, measure, x=size)


PARTS = {
    "partitions": _partitions,
    "connections": _connections,
    "log-size": _log_size,
    "seek": _seek,
    "groups": _groups,
    "metadata": _metadata,
    "wide": _wide,
}

"""The life of a broker: starting, its memory, many topics and partitions, idle connections.

Starts are timed from the start of the process to the first answer to Metadata that names the broker, on a directory
that is formatted (Kafka's format step is not counted). They are additional brokers; those of the contest are idle.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.side_by_side import load, usage
from benchmarks.side_by_side.contest import Contest, Side, sides, tell, with_cpu
from benchmarks.side_by_side.results import Row, Sample
from odradek.protocol.messages.metadata import MetadataRequest

START_GOALS = {"seconds": 0.15}
IDLE_GOALS = {"rss_mb": 0.15}
LOADED_GOALS = {"rss_mb": 0.12}
TOPICS_GOALS = {"seconds": 0.35}
TOPICS, REQUESTS = 1000, 20
PARTITIONS_A_TOPIC = 1000  # a CreateTopics of so many stays within librdkafka's timeout
CONNECTIONS = 1000

_ANSWER_SECONDS = 120
_SETTLE_SECONDS = 1.0
_METADATA = load.frame(MetadataRequest(topics=[]), 12)
_ALL_TOPICS = load.frame(MetadataRequest(topics=None), 12)
_NAMES = [[f"topic-{number}" for number in range(first, TOPICS, REQUESTS)] for first in range(REQUESTS)]


def _memory(contest: Contest, *, quick: bool) -> Iterator[Row]:  # noqa: ARG001 - as all parts
    """Measure memory after the warm-up, and after batches of 900 KB on four connections."""
    contest.warm_up()
    topic = contest.new_topic(4)
    flood = [load.produce_frame(topic, [index], load.batch(900, 1000)) for index in range(4)]
    for side in contest.sides:
        load.run(side.port, flood, connections=4, in_flight=1, seconds=contest.seconds)
    yield contest.row("life", "resident, loaded", _resident, goals=LOADED_GOALS)
    contest.delete_topic(topic)


def _resident(side: Side) -> Sample:
    return {"rss_mb": usage.resident_bytes(side.pid) / 1e6}


def _with_idle_connections(side: Side) -> Sample:
    """Measure the memory that they add to a broker without earlier connections; the process keeps freed memory."""
    before = _resident(side)["rss_mb"]
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", side.port)))
        load.ask(side.port, _METADATA)
        return {"rss_mb": _resident(side)["rss_mb"] - before}


def _empty(contest: Contest, *, quick: bool) -> Iterator[Row]:  # noqa: ARG001 - the same
    """Measure start and memory of a broker without topics, and the memory of a thousand idle connections."""
    started = Row("life", "start to first Metadata", goals=START_GOALS)
    idle = Row("life", "resident, idle", goals=IDLE_GOALS)
    connected = Row("life", f"{CONNECTIONS:,} idle connections more")
    with TemporaryDirectory(prefix="start-") as directory:
        for _ in range(contest.rounds):
            for side in sides(Path(directory), contest.tree):
                _add(started, side, start(side))
                time.sleep(_SETTLE_SECONDS)
                _add(idle, side, _resident(side))
                _add(connected, side, _with_idle_connections(side))
                side.server.stop()
    for row in (started, idle, connected):
        tell(row)
        yield row


def _many_partitions(partitions: int, contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Create partitions, restart after a clean stop and after kill -9; until every partition accepts a record."""
    create = Row("life", f"create {partitions:,} partitions, until all serve")
    clean = Row("life", f"start with {partitions:,} partitions, to first Metadata", goals=START_GOALS)
    served = Row("life", f"start with {partitions:,} partitions, until all serve")
    crashed = Row("life", f"start with {partitions:,} partitions after kill -9, until all serve")
    idle = Row("life", f"resident with {partitions:,} partitions")
    for _ in range(1 if quick else max(1, contest.rounds // 2)):  # a round takes over a minute
        with TemporaryDirectory(prefix="partitions-") as directory:
            for side in sides(Path(directory), contest.tree):
                start(side)
                _add(create, side, _timed(partial(_create, side, partitions)))
                side.server.stop(timeout=120)
                first = start(side)
                serving = _timed(partial(_write_everywhere, side, partitions))
                _add(clean, side, first)
                _add(served, side, {"seconds": first["seconds"] + serving["seconds"]})
                side.server.kill()
                first = start(side)
                serving = _timed(partial(_write_everywhere, side, partitions))
                _add(crashed, side, {"seconds": first["seconds"] + serving["seconds"]})
                time.sleep(_SETTLE_SECONDS)
                _add(idle, side, _resident(side))
                side.server.kill()
    for row in (create, clean, served, crashed, idle):
        tell(row)
        yield row


def _topics(contest: Contest, *, quick: bool) -> Iterator[Row]:  # noqa: ARG001 - as all parts
    """Create topics with one partition in a few requests, on new brokers, then add a partition to each.

    They are deleted when all rounds have created theirs, and the directories last: a file system without a journal,
    as ext4 may be, creates files two to three times more slowly while others were deleted in the last minute.
    """
    create = Row("life", f"create {TOPICS:,} topics in {REQUESTS} requests, until all serve", goals=TOPICS_GOALS)
    grow = Row("life", f"add a partition to {TOPICS:,} topics in {REQUESTS} requests, until all serve")
    delete = Row("life", f"delete {TOPICS:,} topics in {REQUESTS} requests, until none is listed")
    with ExitStack() as directories:
        rounds = [
            sides(Path(directories.enter_context(TemporaryDirectory(prefix="topics-"))), contest.tree)
            for _ in range(contest.rounds)
        ]
        for works in ([(create, _create_topics), (grow, _grow_topics)], [(delete, _delete_topics)]):
            for side in chain.from_iterable(rounds):
                start(side)
                for row, work in works:
                    _add(row, side, with_cpu(side, partial(_timed, partial(work, side.port))))
                side.server.stop()
    for row in (create, grow, delete):
        tell(row)
        yield row


def _create_topics(port: int) -> None:
    with load.Asker(port) as asker:
        for names in _NAMES:
            asker.accepted(load.create_topics_frame(names))
        _write_to_all(asker, 0)


def _grow_topics(port: int) -> None:
    with load.Asker(port) as asker:
        for names in _NAMES:
            asker.accepted(load.create_partitions_frame(names, 2))
        _write_to_all(asker, 1)


def _write_to_all(asker: load.Asker, partition: int) -> None:
    """Produce a record to this partition of each topic."""
    batch = load.batch(1, 100)
    for names in _NAMES:
        for name in names:
            asker.accepted(load.produce_frame(name, [partition], batch))


def _delete_topics(port: int) -> None:
    with load.Asker(port) as asker:
        for names in _NAMES:
            asker.accepted(load.delete_topics_frame(names))
        give_up = time.monotonic() + _ANSWER_SECONDS
        while asker.ask(_ALL_TOPICS)[1].topics:  # Kafka's controller answers before its broker has deleted them
            if time.monotonic() > give_up:
                raise RuntimeError(f"topics are still listed after {_ANSWER_SECONDS} s")
            time.sleep(0.005)


def _add(row: Row, side: Side, sample: Sample) -> None:
    row.samples.setdefault(side.name, []).append(sample)


def _create(side: Side, partitions: int) -> None:
    for number in range(partitions // PARTITIONS_A_TOPIC):
        side.create_topic(f"many-{number}", PARTITIONS_A_TOPIC)
    _write_everywhere(side, partitions)


def _write_everywhere(side: Side, partitions: int) -> None:
    """Produce a record to every partition; return when all have accepted one."""
    batch = load.batch(1, 100)
    for number in range(partitions // PARTITIONS_A_TOPIC):
        load.accepted_bytes(side.port, load.produce_frame(f"many-{number}", range(PARTITIONS_A_TOPIC), batch))


def _timed(work: Callable[[], None]) -> Sample:
    start = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - start}


def start(side: Side) -> Sample:
    """Start a broker; return the seconds until it answers Metadata."""
    return _timed(partial(_start_and_wait, side))


def _start_and_wait(side: Side) -> None:
    side.server.start(wait=False)
    give_up = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < give_up:
        try:
            if load.ask(side.port, _METADATA)[1].brokers:
                return
        except (OSError, struct.error):  # not listening yet, or it closed the connection without a response
            pass
        time.sleep(0.005)
    raise RuntimeError(f"{side.name} did not answer within {_ANSWER_SECONDS} s")


PARTS: Mapping[str, Callable[..., Iterator[Row]]] = {
    "start": _empty,
    "memory": _memory,
    "topics": _topics,
    "partitions-1000": partial(_many_partitions, 1000),
    "partitions-5000": partial(_many_partitions, 5000),
}

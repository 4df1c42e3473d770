"""Two workers on one machine (num.workers=2) beside one process, both beside Apache Kafka, in the same run.

Two generators send half of the connections each, on both sides: to the worker that leads their partitions, or to the
one broker. They need processors, too: a machine that has as many processors as workers shows less than they gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.side_by_side import load
from benchmarks.side_by_side.contest import PROPERTIES, Contest, Side, sides, with_cpu
from benchmarks.side_by_side.raw import FETCHES, FILL, FILL_BYTES, PRODUCES, Fetch, Produce, of_size, walk_frames
from benchmarks.side_by_side.results import Row, Sample
from tests.workers.machine import Machine

WORKERS = 2
"""Also the number of generators."""
ONE, TWO = "one process", "two workers"


_WORKS = ("produce 100 B, 64×1", "produce 100 B, 8×8", "produce 16 KiB batches, 4×4", "produce 256 KiB batches, 4×1")
PRODUCED = [each for work in _WORKS for each in PRODUCES if each.work == work]
FETCHED = (FETCHES[0]._replace(work="fetch 1 MiB, 4 connections", connections=4), FETCHES[-1])


class WorkersSide(Side):
    """Our side in both ways: a broker in one process, and `workers`."""

    def __init__(self, alone: Side, directory: Path) -> None:
        super().__init__(alone.name, alone.server)
        self.alone = alone
        self.workers = Side(alone.name, Machine(directory, WORKERS, PROPERTIES).server)

    def start(self) -> None:
        super().start()
        self.workers.start()

    def stop(self) -> None:
        super().stop()
        self.workers.stop()

    def kill(self) -> None:
        super().kill()
        self.workers.kill()

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> None:
        super().create_topic(name, partitions, configs)
        self.workers.create_topic(name, partitions, configs)

    def delete_topic(self, name: str) -> None:
        super().delete_topic(name)
        self.workers.delete_topic(name)


class WorkersContest(Contest):
    """Apache Kafka, and ours in both ways. `tree`: ours of another commit in one process in place of Apache Kafka."""

    def _prepared(self, directory: Path) -> tuple[Side, Side]:
        baseline, ours = sides(directory, self.tree)
        return baseline, WorkersSide(ours, directory / "workers")


class Way(NamedTuple):
    """A broker, or several workers; partition i is led at port i mod their number."""

    side: Side
    ports: Sequence[int]

    def port(self, partition: int) -> int:
        return self.ports[partition % len(self.ports)]


def _ways(side: Side) -> Mapping[str, Way]:
    if not isinstance(side, WorkersSide):
        return dict.fromkeys((ONE, TWO), Way(side, [side.port]))
    first = side.workers.port
    return {ONE: Way(side.alone, [side.port]), TWO: Way(side.workers, range(first, first + WORKERS))}


def _loads(contest: Contest, *, quick: bool) -> Iterator[Row]:
    """Measure with brokers of their own, beside which those of `contest` are idle."""
    with (
        TemporaryDirectory(prefix="side-by-side-") as directory,
        WorkersContest(Path(directory), tree=contest.tree, rounds=contest.rounds, seconds=contest.seconds) as workers,
    ):
        for wanted in PRODUCED[:3] if quick else PRODUCED:
            yield from _produce(workers, wanted)
        for fetched in FETCHED[1:] if quick else FETCHED:
            yield from _fetch(workers, fetched)


def _produce(contest: Contest, wanted: Produce) -> list[Row]:
    batch = load.batch(wanted.records, wanted.value_bytes)

    def measure(way: str, side: Side) -> Sample:
        chosen = _ways(side)[way]
        with contest.topic_of_a_round(chosen.side, wanted.connections) as topic:
            halves = [
                [
                    load.produce_frame(topic, [partition], batch)
                    for partition in range(half, wanted.connections, WORKERS)
                ]
                for half in range(WORKERS)
            ]
            return _measured(chosen, halves, wanted.connections, wanted.in_flight, len(batch), contest.seconds)

    return _rows(contest, wanted.work, measure)


def _fetch(contest: Contest, wanted: Fetch) -> list[Row]:
    topic = contest.new_topic(WORKERS)
    batch = load.batch(*FILL)
    for way in {id(way.side): way for side in contest.sides for way in _ways(side).values()}.values():
        for partition in range(WORKERS):
            frame = load.produce_frame(topic, [partition], batch)
            load.repeat(way.port(partition), frame, FILL_BYTES // len(batch))
    halves = [walk_frames(wanted, topic, partition) for partition in range(WORKERS)]

    def measure(way: str, side: Side) -> Sample:
        ways = _ways(side)[way]
        return _measured(ways, halves, wanted.connections, 1, wanted.partition_bytes, contest.seconds, walk=True)

    rows = _rows(contest, wanted.work, measure)
    contest.delete_topic(topic)
    return rows


def _rows(contest: Contest, work: str, measure: Callable[[str, Side], Sample]) -> list[Row]:
    return contest.rows("workers", {f"{work}, {way}": partial(measure, way) for way in (ONE, TWO)})


def _measured(
    way: Way,
    halves: Sequence[Sequence[bytes]],
    connections: int,
    in_flight: int,
    request_bytes: int,
    seconds: float,
    *,
    walk: bool = False,
) -> Sample:
    """Run a generator for each half of the frames, and return rate and latencies of both together."""

    def send() -> Sample:
        with ExitStack() as stack:
            started = [
                stack.enter_context(
                    load.start(
                        way.port(half), frames,
                        connections=connections // WORKERS, in_flight=in_flight, seconds=seconds, walk=walk,
                    )
                )
                for half, frames in enumerate(halves)
            ]  # fmt: skip
            measured = [each.result(seconds + 60) for each in started]
        requests = sum(each["requests"] for each in measured)
        return {"rate": requests / seconds, "requests": requests, **load.slower(measured)}

    return of_size(with_cpu(way.side, send), request_bytes)


PARTS = {"load": _loads}

"""Two brokers that run at the same time and are measured in turns.

```
with Contest(directory, tree=None, rounds=5, seconds=4) as contest:
    row = contest.row("raw", "produce 100 B, 8×8", measure)      measure(side) is called in turns, and gives a Sample
```

Before the first row of a run `warm_up` loads both brokers until Java's compilers have compiled Kafka's byte code.
`measure` is also called once for each side without counting, unless it starts new processes in every round.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.side_by_side import load, usage
from benchmarks.side_by_side.results import BASELINE, ODRADEK, Row, Sample
from tests.peers import apache, odradek
from tests.peers.server import Server

# The settings of Kafka's own scripts, with which the goals of this project were measured.
KAFKA_OPTIONS = ("-server", "-Xmx1G", "-Xms1G", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
                 "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent")  # fmt: skip
# The log is deleted with its topic, at once, so that a run needs little disk; the same on both sides.
PROPERTIES = {
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "false",
    "log.segment.delete.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}

WARM_UP_ROUNDS = 1.5
"""The duration of each kind of work in the warm-up, in rounds."""

_TOPIC_SECONDS = 60.0


@dataclass
class Side:
    """One of the two brokers."""

    name: str
    server: Server

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def bootstrap(self) -> str:
        return self.server.bootstrap

    @property
    def pid(self) -> int:
        return self.server.process.pid

    def start(self) -> None:
        self.server.start()

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        """End what runs."""
        if hasattr(self.server, "process") and self.server.process.poll() is None:
            self.server.kill()

    def cpu_seconds(self) -> float:
        return usage.cpu_seconds(self.pid)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def create_topic(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> None:
        """Create a topic and wait until it is usable."""
        self._create(NewTopic(name, partitions, 1, config=dict(configs)))

    def _create(self, topic: NewTopic) -> None:
        admin = self.admin()  # keep a reference: its futures end with it
        admin.create_topics([topic], operation_timeout=_TOPIC_SECONDS)[topic.topic].result(_TOPIC_SECONDS)

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        try:
            admin.delete_topics([name], operation_timeout=_TOPIC_SECONDS)[name].result(_TOPIC_SECONDS)
        except KafkaException as error:
            print(f"{self.name}: topic {name} stays: {error}", file=sys.stderr)


def sides(directory: Path, tree: Path | None) -> tuple[Side, Side]:
    """Return both brokers, not started. The baseline is Apache Kafka, or Odradek in the source tree `tree`."""
    if tree is None:
        baseline = apache.prepare(directory / BASELINE, PROPERTIES, options=KAFKA_OPTIONS)
    else:
        baseline = odradek.prepare(directory / BASELINE, PROPERTIES)
        run_from(tree, baseline)
    return Side(BASELINE, baseline), Side(ODRADEK, odradek.prepare(directory / ODRADEK, PROPERTIES))


def run_from(tree: Path, server: Server) -> None:
    """Let a broker of ours that is not started run in the source tree `tree`."""
    _, _, _, *arguments = server.command  # the interpreter, -m, and a name that earlier commits do not have
    server.command = [
        "env",
        f"PYTHONPATH={tree}",
        sys.executable,
        "-P",
        "-m",
        "broker",
        *arguments,
    ]  # -P: not this directory


Measure = Callable[[Side], Sample]
"""One round of one kind of work on one side."""


class Contest:
    """The two brokers of a run, the number of rounds, and the seconds of a round of raw load. `tree`: see `sides`."""

    def __init__(self, directory: Path, *, tree: Path | None, rounds: int, seconds: float) -> None:
        self.tree = tree
        self.rounds = rounds
        self.seconds = seconds
        self.sides = self._prepared(directory)
        self._topics = 0
        self._is_warm = False

    def _prepared(self, directory: Path) -> tuple[Side, Side]:
        return sides(directory, self.tree)

    def __enter__(self) -> Self:
        try:
            for side in self.sides:
                side.start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        for side in self.sides:
            side.kill()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop both cleanly, and start them again; Java must be warmed up again."""
        for side in self.sides:
            side.stop()
        yield
        for side in self.sides:
            side.start()
        self._is_warm = False

    def warm_up(self) -> None:
        """Send small and large produces and fetches to both sides, once a run."""
        if self._is_warm:
            return
        self._is_warm = True
        topic = self.new_topic(8)
        small = [load.produce_frame(topic, [index], load.batch(1, 100)) for index in range(8)]
        large = [load.produce_frame(topic, [index], load.batch(16, 1000)) for index in range(8)]
        fetch = [load.fetch_frame(topic, [0], 1 << 20)]
        for side in self.sides:
            for frames, connections, in_flight in ((small, 8, 8), (small, 8, 1), (large, 4, 4), (fetch, 4, 1)):
                load.run(
                    side.port, frames, connections=connections, in_flight=in_flight,
                    seconds=self.seconds * WARM_UP_ROUNDS,
                )  # fmt: skip
        self.delete_topic(topic)

    def new_topic(self, partitions: int = 1, configs: Mapping[str, str] = {}) -> str:
        """Create a topic on both sides; return its name."""
        self._topics += 1
        name = f"work-{self._topics}"
        for side in self.sides:
            side.create_topic(name, partitions, configs)
        return name

    def delete_topic(self, name: str) -> None:
        for side in self.sides:
            side.delete_topic(name)

    @contextmanager
    def topic_of_a_round(self, side: Side, partitions: int) -> Iterator[str]:
        """Create a topic on one side; delete it, and wait until its files are gone.

        The logs of all rounds of large batches would have tens of GB. A virtual machine gets memory from its host when
        it touches it first: from 10 GB on, a produce of 16 KiB took 75 µs of the broker's processor instead of 31.
        """
        self._topics += 1
        name = f"work-{self._topics}"
        side.create_topic(name, partitions)
        yield name
        side.delete_topic(name)
        give_up = time.monotonic() + _TOPIC_SECONDS
        while _has_log(side.server.log_dir, name) and time.monotonic() < give_up:
            time.sleep(0.05)

    def row(
        self,
        group: str,
        work: str,
        measure: Measure,
        *,
        goals: Mapping[str, float] = {},
        x: float | None = None,
        uncounted: bool = True,
    ) -> Row:
        """Measure in turns, with `uncounted` after a round that does not count, and report a line."""
        [row] = self.rows(group, {work: measure}, goals=goals, x=x, uncounted=uncounted)
        return row

    def rows(
        self,
        group: str,
        works: Mapping[str, Measure],
        *,
        goals: Mapping[str, float] = {},
        x: float | None = None,
        uncounted: bool = True,
    ) -> list[Row]:
        """Measure several kinds of work in turns within a round, so that they can be compared."""
        self.warm_up()
        goals = {} if self.tree else goals
        rows = {work: Row(group, work, {side.name: [] for side in self.sides}, dict(goals), x) for work in works}
        for counted in (*(False,) * uncounted, *(True,) * self.rounds):
            for work, measure in works.items():
                for side in self.sides:
                    sample = measure(side)
                    if counted:
                        rows[work].samples[side.name].append(sample)
        for row in rows.values():
            tell(row)
        return list(rows.values())


def _has_log(log_dir: Path, topic: str) -> bool:
    """Return whether a broker, or one of its workers, still has a directory of the topic."""
    try:
        return any(log_dir.rglob(f"{topic}-*"))
    except FileNotFoundError:  # removed meanwhile
        return True


def with_cpu(side: Side, measure: Callable[[], Sample]) -> Sample:
    """Measure, and add the broker's CPU: the total, and per request if requests were counted."""
    before = side.cpu_seconds()
    sample = measure()
    spent = side.cpu_seconds() - before
    sample["cpu_s"] = spent
    if requests := sample.pop("requests", 0):
        sample["cpu_us"] = spent / requests * 1e6
    return sample


def tell(row: Row) -> None:
    """Print a line of progress to standard error."""
    figures = ", ".join(
        f"{name} {row.median(BASELINE, name):.4g} → {row.median(ODRADEK, name):.4g} (×{row.ratio(name):.2f})"
        for name in row.figures()
    )
    print(f"{row.group}: {row.work}: {figures}", file=sys.stderr)

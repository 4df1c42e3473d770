"""Kill a broker and an application of Kafka Streams while it counts words, and check that each word counts once.

Two instances of `tests/peers/streams/CountWords.java` run with exactly_once_v2, over a repartition topic and a store
with a changelog. Each round kills (SIGKILL) the broker and one of the instances, and starts both again; the order and
the pauses are random. A producer writes words all the time. Rules, by a consumer with isolation.level=read_committed:

| rule | when |
|---|---|
| the counts of a word are 1, 2, 3, …: none missing, none twice, in this order | with every record |
| the last count of every word is the number of times that it was written | at the end |
| the group has committed the end of every partition of the words | at the end |

With `--guarantee at_least_once` the run fails: that shows that the kills hit transactions. Two kills of Apache Kafka
4.3.1 pass. A run of ten stopped on it after six: a transaction was open in `counts`, although `__transaction_state` had
its PrepareAbort with that partition, and its CompleteAbort. The coordinator had ended it without that marker.

    python -m tests.crash.kill_kafka_streams --kills 10
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from tests.crash.kill_nine import RECONNECT, RETRY, SERVERS, LostError
from tests.peers import features
from tests.peers.server import Server
from tests.peers.streams import INPUT, OUTPUT, Application

APPLICATION_ID = "count-words"
PARTITIONS = 3
INSTANCES = 2
WORDS = [f"word-{number}" for number in range(50)]
TIMEOUT = 90.0
"""Seconds without any new count before a run fails. An instance that is killed is missed after three."""

# A dead instance blocks others for seconds only. Its open transaction ends when it starts again with the same ids.
PROPERTIES = {
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
}
# A transaction outlives the longest start of a broker: if it timed out meanwhile, Kafka answers the commit
# INVALID_TXN_STATE, and Streams ends.
SETTINGS = {
    "main.consumer.session.timeout.ms": "3000",
    "main.consumer.heartbeat.interval.ms": "300",
    "producer.transaction.timeout.ms": "60000",
    "reconnect.backoff.max.ms": "200",
    "num.stream.threads": "1",
    "commit.interval.ms": "300",
}
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"

_AT_ONCE = 10
_UNCOUNTED = 500
"""The most words that are written and not yet counted: the work goes on through all kills, and ends soon after them."""
_LONGEST_PAUSE = 0.7


class Writer:
    """Writes random words, each once, and keeps how often it wrote each."""

    def __init__(self, bootstrap: str, chance: random.Random) -> None:
        self.written: Counter[str] = Counter()
        self._chance = chance
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "message.timeout.ms": 120_000}
        self._producer = Producer({**settings, **RECONNECT, **RETRY})

    def write(self) -> None:
        for word in self._chance.choices(WORDS, k=_AT_ONCE):
            number = str(self.written.total())
            self._producer.produce(INPUT, key=number, value=word, on_delivery=_delivered)
            self.written[word] += 1
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait for the missing responses."""
        if unanswered := self._producer.flush(TIMEOUT):
            raise LostError(f"{unanswered} words were never acknowledged")


def _delivered(error: KafkaError | None, message: Message) -> None:
    if error is not None:
        raise LostError(f"{message.key()!r}: {error}")


class Reader:
    """Reads the counts of all partitions from their start; with `is_exact` each must follow its word's last one."""

    def __init__(self, bootstrap: str, isolation_level: str = "read_committed", *, is_exact: bool = True) -> None:
        self.totals: Counter[str] = Counter()
        self.read = 0
        self._is_exact = is_exact
        self._ended: set[int] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "isolation.level": isolation_level,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
                **RECONNECT,
            }
        )
        self._consumer.assign([TopicPartition(OUTPUT, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])

    def poll(self, seconds: float) -> None:
        for message in self._consumer.consume(500, seconds):
            error = message.error()
            if error is None:
                self._count(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                self._ended.add(message.partition() or 0)
            else:
                raise LostError(f"{OUTPUT}: {error}")

    def _count(self, message: Message) -> None:
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert value is not None
        word, count = key.decode(), int(value)
        expected = self.totals[word] + 1
        if self._is_exact and count != expected:
            at = f"{OUTPUT}-{message.partition()}, offset {message.offset()}"
            raise LostError(f"{word}: {count} instead of {expected} ({at})")
        self.totals[word] = count
        self.read += 1

    def read_to_end(self) -> None:
        end = time.monotonic() + TIMEOUT
        while len(self._ended) < PARTITIONS:
            if time.monotonic() > end:
                raise LostError(f"{OUTPUT} has no end after {TIMEOUT} s")
            self.poll(0.1)

    def close(self) -> None:
        self._consumer.close()


@dataclass
class Run:
    """One server with its producer, application and consumer."""

    server: Server
    chance: random.Random
    directory: Path
    guarantee: str = EXACTLY_ONCE
    applications: list[Application] = field(init=False)
    writer: Writer = field(init=False)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        bootstrap = self.server.bootstrap
        create_topics(bootstrap)
        settings = {**SETTINGS, "processing.guarantee": self.guarantee}
        self.applications = [
            Application(APPLICATION_ID, bootstrap, self.directory / f"instance-{number}", settings)
            for number in range(INSTANCES)
        ]
        self.writer = Writer(bootstrap, self.chance)
        self.reader = Reader(bootstrap)

    def kill_and_check(self, kills: int, report_every: int = 0) -> dict[str, int]:
        """Kill the broker and an instance `kills` times each; return the numbers of words and of skipped records."""
        try:
            for application in self.applications:
                application.start()
            for kill in range(1, kills + 1):
                self._work_until(self.writer.written.total() + 1)  # words that are written now are counted
                self._kill(self.chance.choice(self.applications))
                if report_every and kill % report_every == 0:
                    print(f"{kill} kills, {self.reader.read} words counted", flush=True)
            return self._finish()
        finally:
            for application in self.applications:
                application.kill()
            self.reader.close()

    def _kill(self, application: Application) -> None:
        """Kill and start the broker and the application, in a random order with pauses in between."""
        server = [self.server.kill, self.server.start]
        instance = [application.kill, application.start]
        for step in _interleaved(server, instance, self.chance):
            self._work_for(self.chance.uniform(0, _LONGEST_PAUSE))
            step()

    def _work_until(self, count: int, *, writes: bool = True) -> None:
        """Wait until `count` words are counted. Fails if no word is counted for a long time, or an instance ends."""
        counted, end = self.reader.read, time.monotonic() + TIMEOUT
        while self.reader.read < count:
            self._work_for(0.05, writes=writes)
            for application in self.applications:
                application.check()
            if self.reader.read > counted:
                counted, end = self.reader.read, time.monotonic() + TIMEOUT
            if time.monotonic() > end:
                printed = "\n".join(each.printed()[-4000:] for each in self.applications)
                raise LostError(f"nothing was counted for {TIMEOUT} s, after {counted} words\n{printed}")

    def _work_for(self, seconds: float, *, writes: bool = True) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if writes and self.writer.written.total() - self.reader.read < _UNCOUNTED:
                self.writer.write()
            self.reader.poll(0.02)

    def _finish(self) -> dict[str, int]:
        self._work_until(self.writer.written.total() + 1)
        self.writer.finish()
        written = self.writer.written
        self._work_until(written.total(), writes=False)
        for application in self.applications:
            application.stop()
        bootstrap = self.server.bootstrap
        again, everything = Reader(bootstrap), Reader(bootstrap, "read_uncommitted", is_exact=False)
        for reader in (again, everything):
            reader.read_to_end()
            reader.close()
        for totals in (self.reader.totals, again.totals):
            if totals != written:
                raise LostError(f"counted minus written: {_differences(totals, written)}")
        check_offsets(bootstrap, written.total())
        return {"words": written.total(), "skipped": everything.read - again.read}


def _interleaved(
    one: Sequence[Callable[[], object]], other: Sequence[Callable[[], object]], chance: random.Random
) -> Iterator[Callable[[], object]]:
    """Both sequences in one random order that keeps the order of each."""
    steps = [iter(one)] * len(one) + [iter(other)] * len(other)
    chance.shuffle(steps)
    for each in steps:
        yield next(each)


def _differences(totals: Counter[str], written: Counter[str]) -> dict[str, int]:
    return {word: totals[word] - written[word] for word in WORDS if totals[word] != written[word]}


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (INPUT, OUTPUT)]).values():
        created.result(30)


def check_offsets(bootstrap: str, total: int) -> None:
    """Check that the application has committed its position after all words."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(APPLICATION_ID)])[APPLICATION_ID].result(30)
    committed = [each.offset for each in found.topic_partitions if each.topic == INPUT]
    if sum(committed) != total:
        raise LostError(f"the group has committed {committed} of {total} words")


def main() -> None:
    name = "python -m tests.crash.kill_kafka_streams"
    parser = argparse.ArgumentParser(prog=name, description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=10, help="of the broker, and of instances")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    parser.add_argument("--level", type=int, choices=(0, 1, 2), default=2, help="transaction.version")
    parser.add_argument("--guarantee", choices=(EXACTLY_ONCE, AT_LEAST_ONCE), default=EXACTLY_ONCE)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    with tempfile.TemporaryDirectory(prefix="kill-kafka-streams-") as made:
        directory = Path(made)
        server = SERVERS[arguments.server](directory / "server", PROPERTIES).start()
        try:
            features.set_level(server, features.TRANSACTION_VERSION, arguments.level)
            began = time.monotonic()
            run = Run(server, random.Random(arguments.seed), directory, arguments.guarantee)
            result = run.kill_and_check(arguments.kills, report_every=1)
        finally:
            server.kill()
        seconds = time.monotonic() - began
    print(
        f"{arguments.kills} kills in {seconds:.0f} s: {result['words']} words, each counted once; "
        f"{result['skipped']} records of aborted transactions skipped"
    )


if __name__ == "__main__":
    main()

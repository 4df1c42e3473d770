"""Kill the broker, and processes that copy a topic exactly once, again and again, and check the copy.

Copiers of three clients (`tests.crash.copiers`) share the partitions of a topic of numbers, to which a producer appends
through all the faults. The faults come in random order, at random times, each after some progress:

| fault | what happens |
|---|---|
| broker | kill -9 and a restart; of three brokers one, and the others go on for a while |
| copier | kill -9, and another one begins; with another transactional id, the open transaction of the first times out |
| zombie | a copier is paused until others have its partitions; then it goes on where it was, and is killed later |

A read_committed consumer reads the copies all the time. Each partition must have the numbers of the original in their
order: none lost, none twice, none of an attempt that was aborted on purpose. In the end the committed offsets of the
group are the ends of the original, and a consumer that reads everything once more finds the same, with every attempt
whole.

    python -m tests.crash.kill_copiers --kills 20
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.brokers import Brokers, running
from tests.crash.copiers import GROUP, INPUT, OUTPUT, Copy
from tests.crash.copiers.processes import Copiers, CopyError, kill, send_signal
from tests.crash.kill_nine import RECONNECT, RETRY, SERVERS
from tests.peers.server import Server

CLIENTS = ("confluent", "bundled", "java")
PARTITIONS = 4
PROPERTIES = {
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "100",
}
TIMEOUT = 120.0
"""Seconds after which it is an error that no record was copied."""

UNCOPIED = 400
"""The most numbers that were sent and not seen in the copy: several transactions for each copier."""

_OTHER_ID = 0.25
_PARTITIONS_OF = {topic: [TopicPartition(topic, index, 0) for index in range(PARTITIONS)] for topic in (INPUT, OUTPUT)}


class Outcome(NamedTuple):
    """The result of a run without an error."""

    copied: int
    attempts: int
    """Committed transactions."""
    ended: int
    """Copiers that ended because another one had fenced them, or a position was lost."""


# ------------------------------------------------------------------------------------------------------ the brokers


class Killable(Protocol):
    """A server, or several. `survives`: whether there is progress between `kill` and `restore`."""

    bootstrap: str
    survives: bool

    def kill(self, chance: random.Random) -> None: ...

    def restore(self) -> None: ...


class OneServer:
    survives = False

    def __init__(self, server: Server) -> None:
        self.bootstrap = server.bootstrap
        self._server = server

    def kill(self, chance: random.Random) -> None:
        self._server.kill()

    def restore(self) -> None:
        self._server.start()


class ThreeServers:
    survives = True

    def __init__(self, brokers: Brokers) -> None:
        self.bootstrap = brokers.bootstrap
        self._brokers = brokers

    def kill(self, chance: random.Random) -> None:
        self._brokers.kill(chance.choice(self._brokers.running))

    def restore(self) -> None:
        self._brokers.heal()


# ---------------------------------------------------------------------------------------------------------- the run


class Run:
    """The producer of numbers, the reader of copies, and the faults."""

    def __init__(self, servers: Killable, copiers: Copiers, chance: random.Random) -> None:
        self._servers = servers
        self._copiers = copiers
        self._chance = chance
        self._producer = Producer(
            {
                "bootstrap.servers": servers.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 1,
                **RECONNECT,
                **RETRY,
            }
        )
        self._reader = _consumer(servers.bootstrap, "unused")
        self._sent = 0
        self._is_feeding = True
        self.seen: list[list[bytes]] = [[] for _ in range(PARTITIONS)]

    @property
    def _copied(self) -> int:
        return sum(map(len, self.seen))

    def run(self, kills: int, zombies: int, report: Callable[[str], None]) -> Outcome:
        """Raises CopyError."""
        self._reader.assign(_PARTITIONS_OF[OUTPUT])
        self._progress(1)
        faults = [self._kill_server] * kills + [self._kill_copier] * kills + [self._pause_copier] * zombies
        self._chance.shuffle(faults)
        for number, fault in enumerate(faults, 1):
            self._progress(self._chance.randrange(1, 200))
            self._pump(self._chance.uniform(0, 0.1))
            fault()
            report(f"{number} of {len(faults)}: {fault.__name__.strip('_')}, {self._copied} copied")
        self._progress(1)
        self._is_feeding = False
        self._pump_until(lambda: self._copied >= self._sent)
        self._check_offsets()
        self._copiers.kill_all()
        attempts = self._check_again()
        self._reader.close()
        return Outcome(self._copied, attempts, self._copiers.ended)

    def _kill_server(self) -> None:
        self._servers.kill(self._chance)
        if self._servers.survives:
            self._progress(self._chance.randrange(1, 200))
        self._servers.restore()

    def _kill_copier(self) -> None:
        slot = self._chance.choice(self._copiers.slots)
        kill(slot.process)
        self._copiers.replace(slot, other_id=self._chance.random() < _OTHER_ID)

    def _pause_copier(self) -> None:
        """Stop a copier until another one has taken over its partitions, and continue it beside its successor."""
        slot = self._chance.choice(self._copiers.slots)
        zombie = slot.process
        send_signal(zombie, signal.SIGSTOP)
        self._copiers.replace(slot, other_id=True)
        before = [len(each) for each in self.seen]
        self._pump_until(lambda: all(len(now) > then for now, then in zip(self.seen, before, strict=True)))
        send_signal(zombie, signal.SIGCONT)
        self._progress(100)
        kill(zombie)

    # What goes on all the time.

    def _progress(self, more: int) -> None:
        wanted = self._copied + more
        self._pump_until(lambda: self._copied >= wanted)

    def _pump_until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > end:
                printed = self._copiers.output.read_text(errors="replace")
                raise CopyError(f"the copy stands still: {self._copied} of {self._sent}\n{printed[-8000:]}")
            self._pump(0.02)

    def _pump(self, seconds: float) -> None:
        """Send numbers, read copies, and replace copiers that have ended."""
        while self._is_feeding and self._sent - self._copied < UNCOPIED:
            self._producer.produce(INPUT, b"%09d" % self._sent, partition=self._sent % PARTITIONS)
            self._sent += 1
        self._producer.poll(0)
        for message in self._reader.consume(500, seconds):
            if message.error() is None:
                self._see(message)
        self._copiers.replace_ended()

    def _see(self, message: Message) -> None:
        partition, value = message.partition(), message.value()
        assert partition is not None
        assert value is not None
        copy, before = Copy.of(value), self.seen[partition]
        expected = b"%09d" % (len(before) * PARTITIONS + partition)
        if copy.aborts:
            raise CopyError(f"a reader saw {value!r} at offset {message.offset()} of partition {partition}")
        if copy.original != expected:
            raise CopyError(
                f"{value!r} is at offset {message.offset()} of partition {partition}, in place of {expected!r}; "
                f"before it: {before[-3:]!r}"
            )
        before.append(value)

    # The checks at the end.

    def _check_offsets(self) -> None:
        consumer = _consumer(self._servers.bootstrap, GROUP)
        ends = [consumer.get_watermark_offsets(each, TIMEOUT)[1] for each in _PARTITIONS_OF[INPUT]]
        committed = [each.offset for each in consumer.committed(_PARTITIONS_OF[INPUT], TIMEOUT)]
        consumer.close()
        if committed != ends:
            raise CopyError(f"the group has committed {committed}, and the numbers end at {ends}")

    def _check_again(self) -> int:
        """Read all copies again; return the number of their attempts."""
        again = list(_read_all(self._servers.bootstrap))
        if again != self.seen:
            raise CopyError(f"{sum(map(len, again))} copies are in the log, and {self._copied} were read before")
        copies = [Copy.of(value) for values in again for value in values]
        sizes = {copy.attempt: copy.size for copy in copies}
        counts = Counter(copy.attempt for copy in copies)
        if torn := {name: size for name, size in sizes.items() if counts[name] != size}:
            raise CopyError(f"these attempts are not whole: {torn}")
        return len(sizes)


def _consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **RECONNECT,
        }
    )


def _read_all(bootstrap: str) -> Iterator[list[bytes]]:
    """The values of each partition up to the last stable offset."""
    for partition in _PARTITIONS_OF[OUTPUT]:
        consumer = _consumer(bootstrap, "unused")
        consumer.assign([partition])
        values = []
        while (message := consumer.poll(TIMEOUT)) is not None:
            if message.error() is None:
                values.append(message.value())
            elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                break
        consumer.close()
        yield values


def kill_and_check(
    servers: Killable,
    directory: Path,
    kills: int,
    chance: random.Random,
    *,
    clients: Sequence[str] = CLIENTS,
    zombies: int = 0,
    session_ms: int = 2000,
    report: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run against servers that serve: so many kills of a broker, as many of copiers, and so many zombies.

    Raises CopyError.
    """
    topics = [NewTopic(name, PARTITIONS, -1) for name in (INPUT, OUTPUT)]
    admin = AdminClient({"bootstrap.servers": servers.bootstrap})
    for created in admin.create_topics(topics).values():
        created.result(TIMEOUT)
    copiers = Copiers(servers.bootstrap, directory / "copiers.log", session_ms)
    run = Run(servers, copiers, chance)
    try:
        copiers.start(clients)
        return run.run(kills, zombies, report)
    finally:
        copiers.kill_all()


@contextmanager
def _servers(kind: str, count: int, directory: Path) -> Iterator[Killable]:
    if count == 1:
        server = SERVERS[kind](directory, PROPERTIES).start()
        try:
            yield OneServer(server)
        finally:
            server.kill()
    else:
        with running(directory, **{name.replace(".", "_"): value for name, value in PROPERTIES.items()}) as brokers:
            yield ThreeServers(brokers)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.kill_copiers", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=20, help="of brokers, and as many of copiers")
    parser.add_argument("--zombies", type=int, default=5)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=CLIENTS, help="one copier for each")
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--server", choices=SERVERS, default="odradek")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="kill-copiers-") as temporary,
        _servers(arguments.server, arguments.brokers, Path(temporary)) as servers,
    ):
        outcome = kill_and_check(
            servers,
            Path(temporary),
            arguments.kills,
            random.Random(arguments.seed),
            clients=arguments.clients,
            zombies=arguments.zombies,
            report=lambda line: print(line, flush=True),
        )
    print(f"{2 * arguments.kills + arguments.zombies} faults in {time.monotonic() - began:.0f} s: {outcome}")


if __name__ == "__main__":
    main()

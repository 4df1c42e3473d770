"""One seeded run: producers with transactions, a reader and faults, against a server process or a cluster.

Producers of both versions of the protocol share transactional ids, so that they fence each other; a producer that fails
is replaced. The schedule of the faults and the contents of the transactions come from the seed; what happens at the
same time does not, so a seed that fails may pass when it is repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from random import Random

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.checker.history import History, Seen, Transaction
from tests.checker.late_requests import SOURCE, SOURCE_PARTITIONS, produce_late
from tests.checker.nemesis import Nemesis
from tests.checker.producers import (
    PARTITIONS,
    QUICK,
    QUIET,
    TOPIC,
    Run,
    end_open,
    produce_as_bundled,
    produce_as_confluent,
    quiet_bundled_clients,
)
from tests.peers.transactional.decided import stuck

Producers = Sequence[tuple[str, Callable[[Run], None]]]
PRODUCERS: Producers = (
    ("one", produce_as_confluent),
    ("one", produce_as_bundled),
    ("two", produce_as_confluent),
    ("three", produce_as_bundled),
    ("four", produce_late),
)
"""The transactional id of each producer, and its client."""
IN_CLUSTER = PRODUCERS[:-1]
"""Without the producer with late requests, which knows one broker."""
LATE_REQUESTS = PRODUCERS[-1:]
"""Only the producer with late requests: it sends many transactions in a short time."""


_DECIDED_SECONDS = 30.0
"""The seconds that a transaction may be in PrepareCommit or PrepareAbort while nothing is disturbed. It takes some
milliseconds, and after a fault the time until a coordinator has loaded its partition."""
_STUCK = (TimeoutError, KafkaException)
"""The errors of clients that cannot go on."""


class Workload:
    """The clients of a run; `history` is complete after `run`."""

    def __init__(
        self,
        nemesis: Nemesis,
        seed: int,
        faults: int,
        timeout: float = 120.0,
        producers: Producers = PRODUCERS,
        transactions: int = 10,
    ) -> None:
        """`timeout`: the seconds after which it is an error that nothing goes on. `transactions` follow the faults."""
        self.history = History()
        self._nemesis = nemesis
        self._random = Random(seed)
        self._faults = faults
        self._timeout = timeout
        self._producers = producers
        self._transactions = transactions
        self._over = threading.Event()
        self._ended = 0
        self._is_stuck = False
        self._progress = threading.Condition()
        self._failures: list[BaseException] = []

    def run(self) -> History:
        """Run until all faults have happened, or a client cannot go on; the history has the reason then.

        Raises the error of a client that is none of Kafka.
        """
        admin = AdminClient({"bootstrap.servers": self._nemesis.bootstrap}, **QUIET)
        topics = [NewTopic(TOPIC, PARTITIONS), NewTopic(SOURCE, SOURCE_PARTITIONS)]
        for created in admin.create_topics(topics).values():
            created.result(self._timeout)
        threads = [threading.Thread(target=self._guarded, args=(self._read,))]
        for number, (transactional_id, produce) in enumerate(self._producers):
            run = Run(
                self._nemesis.bootstrap,
                transactional_id,
                f"{number}",
                Random(self._random.randrange(2**32)),
                self._timeout,
                self._over,
                self._note,
                self.history,
            )
            threads.append(threading.Thread(target=self._guarded, args=(produce, run)))
        with quiet_bundled_clients():
            for thread in threads:
                thread.start()
            try:
                self._disturb()
            finally:
                self._over.set()
                for thread in threads:
                    thread.join()
        if self._failures:
            raise self._failures[0]
        if not self._is_stuck:
            self._end()
        return self.history

    def _end(self) -> None:
        """End the transactions that are open, and read everything."""
        try:
            for transactional_id, _ in self._producers:
                end_open(self._nemesis.bootstrap, transactional_id, self._timeout)
            self.history.final = list(self._read_all())
        except _STUCK as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Note that a client could not go on."""
        if isinstance(error, _STUCK):
            self._is_stuck = True
            self.history.failures.append(str(error) or type(error).__name__)
        else:
            self._failures.append(error)
        self._over.set()
        with self._progress:
            self._progress.notify_all()

    def _note(self, transaction: Transaction) -> None:
        with self._progress:
            self.history.transactions.append(transaction)
            self._ended += 1
            self._progress.notify_all()

    def _guarded(self, target: object, *arguments: object) -> None:
        try:
            target(*arguments)  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            self._fail(error)

    def _disturb(self) -> None:
        """Do a fault after some more transactions, each time."""
        for _ in range(self._faults):
            self._await_transactions(self._random.randrange(5, 30))
            if self._over.is_set():
                return
            self._nemesis.strike(self._random, self._over)
            self._await_decided()
        self._await_transactions(self._transactions)

    def _await_decided(self) -> None:
        """Let the transactions that are decided now end, while nothing is disturbed; note those that do not."""
        try:
            late = stuck(self._nemesis.servers, min(self._timeout, _DECIDED_SECONDS))
        except _STUCK as error:
            self._fail(error)
        else:
            self.history.stuck += sorted(map(str, late))

    def _await_transactions(self, more: int) -> None:
        with self._progress:
            wanted = self._ended + more
            done = self._progress.wait_for(lambda: self._ended >= wanted or self._over.is_set(), self._timeout)
        if not done:
            self._fail(TimeoutError(f"less than {more} transactions ended in {self._timeout} s"))

    def _read(self) -> None:
        seen = self.history.reads.setdefault("reader", [])
        with closing(_consumer(self._nemesis.bootstrap, {})) as consumer:
            consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
            while not self._over.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    seen.append(_seen(message))

    def _read_all(self) -> Iterator[Seen]:
        ended: set[int] = set()
        with closing(_consumer(self._nemesis.bootstrap, {"enable.partition.eof": True})) as consumer:
            consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
            while len(ended) < PARTITIONS:
                message = consumer.poll(self._timeout)
                if message is None:
                    raise TimeoutError(f"partitions without an end: {set(range(PARTITIONS)) - ended}")
                if message.error() is None:
                    yield _seen(message)
                elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                    ended.add(message.partition())


def _consumer(bootstrap: str, more: dict[str, object]) -> Consumer:
    properties = {
        "bootstrap.servers": bootstrap,
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        **QUICK,
        **more,
    }
    return Consumer(properties, **QUIET)


def _seen(message: Message) -> Seen:
    value = message.value()
    assert value is not None
    return Seen(message.partition(), message.offset(), value.decode())

"""A coordinator of transactions that is paused for longer than its session is certain, and shorter than its session."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.client import Producer, TransactionAbortedError
from tests.cluster import transactional
from tests.cluster.brokers import LIMIT, TRANSACTION, Brokers, running, wait_until
from tests.cluster.writers import PARTITIONS
from tests.peers import etcd
from tests.peers.server import Server
from tests.peers.transactional.decided import decided

pytestmark = etcd.MARKS

TOPIC = "t"
PRODUCERS = 20
"""So many commit all the time that a pause finds one whose decision is in the log, but not in that of a follower."""
PAUSES = 10
NO_LEADER = -1
RETRY_SECONDS = 1.5
"""The coordinator tries again to write a marker after at most one second."""


class Committers:
    """Producers that commit one transaction after the other, until the end of the `with` block.

    Each transaction has one record in each partition. `committed` are the values of the committed ones.
    """

    def __init__(self, bootstrap: str, transactional_ids: Sequence[str]) -> None:
        self.committed: list[bytes] = []
        self._bootstrap = bootstrap
        self._ids = transactional_ids
        self._is_over = threading.Event()
        self._failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        assert not self._failures, self._failures

    def await_commits(self, count: int = PRODUCERS) -> None:
        """Return when so many transactions more are committed."""
        wanted = len(self.committed) + count
        wait_until(lambda: self._failures or len(self.committed) >= wanted, lambda: f"{wanted} commits")

    def _run(self) -> None:
        try:
            asyncio.run(self._commit_all())
        except BaseException as error:  # noqa: BLE001 - `__exit__` raises it
            self._failures.append(error)

    async def _commit_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for each in self._ids:
                tasks.create_task(self._commit(each))

    async def _commit(self, transactional_id: str) -> None:
        async with Producer(self._bootstrap, transactional_id=transactional_id, linger_ms=0) as producer:
            for number in itertools.count():
                if self._is_over.is_set():
                    return
                value = f"{transactional_id} {number}".encode()
                try:
                    async with producer.transaction():
                        for partition in range(PARTITIONS):
                            await producer.send(TOPIC, value, partition=partition)
                except TransactionAbortedError:
                    continue  # the pause came between the verification of a batch and a marker before it
                self.committed.append(value)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Brokers]:
    with running(tmp_path_factory.mktemp("cluster")) as brokers:
        yield brokers


@pytest.fixture
def brokers(started: Brokers) -> Brokers:
    started.heal()
    return started


def create(brokers: Brokers, topic: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])[topic].result(LIMIT)


def test_a_commit_ends_although_its_coordinator_was_fenced_while_a_partition_had_no_leader(brokers: Brokers) -> None:
    create(brokers, "away", 1)
    dead = brokers.leader("away", 0)
    names = (f"away-{number}" for number in itertools.count())
    name = next(each for each in names if brokers.coordinator(each, TRANSACTION) != dead)
    with transactional.Librdkafka(brokers.bootstrap, "away", name) as producer:
        producer.write(b"committed")
        brokers.kill(dead)
        brokers.wait_until_led_by_others([dead])
        wait_until(lambda: brokers.view().topics["away"][0].leader == NO_LEADER)
        producer.commit()
        coordinator = brokers.servers[brokers.coordinator(name, TRANSACTION)]
        assert [each.transactional_id for each in decided([coordinator])] == [name]

        for member in brokers.etcd.members:
            member.kill()
        [other] = [each for each, server in brokers.servers.items() if each != dead and server is not coordinator]
        brokers.pause(other)
        wait_until(lambda: not serves(coordinator))
        threading.Event().wait(RETRY_SECONDS)

        brokers.heal()

    assert transactional.committed(brokers.bootstrap, "away") == [[b"committed"]] * PARTITIONS
    wait_until(lambda: not decided(tuple(brokers.servers.values())))


def serves(coordinator: Server) -> bool:
    """Whether the broker still answers for the transactions that it coordinates."""
    try:
        decided([coordinator])
    except ConnectionError:
        return False
    return True


def test_decided_transactions_end_although_their_coordinator_was_fenced_for_a_moment(brokers: Brokers) -> None:
    create(brokers, TOPIC, 3)
    ids = [f"id-{number}" for number in range(PRODUCERS)]
    with Committers(brokers.bootstrap, ids) as committers:
        for name in ids[:PAUSES]:
            committers.await_commits()
            brokers.doze(brokers.coordinator(name, TRANSACTION))

    wait_until(lambda: not decided(tuple(brokers.servers.values())), lambda: "PrepareCommit of no transaction")
    for found in transactional.committed(brokers.bootstrap, TOPIC):
        assert sorted(found) == sorted(committers.committed)

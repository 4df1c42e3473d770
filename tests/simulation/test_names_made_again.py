"""A topic is deleted and made again; its broker is killed at each change of its disk on the way, and afterwards.

The first topic leaves 30 records, of which 20 are deleted, and all its checkpoints. What is acknowledged in the second
one must be there after the kills, from offset 0. `tests/storage/test_names_made_again.py` has the same for one log
directory alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tests.simulation import remakes
from tests.simulation.client import Client, only
from tests.simulation.cluster import NODE_IDS, Cluster
from tests.simulation.history import History
from tests.simulation.streams import SimulatedNetwork
from tests.simulation.workload import Workload
from tests.simulation.world import World

OLD_RECORDS, DELETED = 30, 20
NEW_RECORDS = 40  # above all offsets of the first topic
CHECKPOINTS_SECONDS = 4.0
"""After so long every checkpoint has its row."""
RESTART_SECONDS = 0.5
LIFE_SECONDS = 60.0
ONE_BROKER = {"default.replication.factor": "1", "min.insync.replicas": "1"}
SYNCED = {"log.flush.interval.messages": "1"}
STEP = 5
"""Of the changes, every so many-th is tried, from another one in each of the cases."""


@pytest.fixture(autouse=True)
def _without_log_lines() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable()
    yield
    logging.disable(before)


class Life:
    """The two topics in a cluster. At the `stop_at`-th change of the leader's disk after the deletion was asked for,
    the leader is killed, or all brokers lose power; when all is written, the leader is killed once more."""

    def __init__(self, brokers: int, stop_at: int, *, by_power: bool = False) -> None:
        self.stop_at = stop_at
        self.world = World(stop_at)
        properties = remakes.PROPERTIES | (ONE_BROKER if brokers == 1 else {}) | (SYNCED if by_power else {})
        self.cluster = Cluster(self.world, lambda _: None, properties)
        self.node_ids = NODE_IDS[:brokers]
        self.history = History(self.world.fail)
        self.workload = Workload(self.history, self._client, self.world.fail)
        self._by_power = by_power
        self._end_process = self.cluster.cut_power if by_power else self.cluster.kill
        self.was_stopped = False

    def _client(self, name: str) -> Client:
        network = SimulatedNetwork(self.cluster.network, self.cluster.hosts, self.cluster.client_host)
        return Client(name, self.cluster.client_host, network, list(self.node_ids))

    def run(self) -> list[str]:
        """Return what was wrong."""
        for node_id in self.node_ids:
            self.cluster.network.at(0.01 * node_id, self.cluster.start, node_id)
        living = self.cluster.clients.create_task(self._live())
        while not living.done() and self.world.now < LIFE_SECONDS:
            self.world.run(self.world.now + 0.5)
        if not living.done():
            self.world.fail("not everything can be written and read")
        elif living.exception() is not None:
            self.world.fail(f"a client failed: {living.exception()!r}")
        failures = self.world.failures
        self.cluster.end()
        return failures

    async def _live(self) -> None:
        client = self._client("life")
        first = await self.workload.create("t", 1)
        await self._write(first, OLD_RECORDS)
        await self._delete_records(client, first)
        await asyncio.sleep(CHECKPOINTS_SECONDS)
        await self._stop_later(client, first)
        await self.workload.delete(client, first)
        second = await self.workload.create("t", 1)
        await self._write(second, NEW_RECORDS)
        await self._end(client, second)
        await self._read(client, second)

    async def _write(self, topic_id: bytes, count: int) -> None:
        writing = asyncio.get_running_loop().create_task(self.workload.write((topic_id, 0), 0.02))
        while self.history.partitions[topic_id, 0].acknowledged_end < count:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(0.02)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    async def _leader(self, client: Client, topic_id: bytes) -> int:
        client.forget_leader(topic_id, 0)
        while (leader := await client.leader(topic_id, 0)) is None:  # noqa: ASYNC110 - in virtual time
            await asyncio.sleep(0.1)
        return leader.node_id

    async def _delete_records(self, client: Client, topic_id: bytes) -> None:
        rows = [DeleteRecordsPartition(0, DELETED)]
        request = DeleteRecordsRequest([DeleteRecordsTopic("t", rows)], timeout_ms=1000)
        answer = await client.ask(await self._leader(client, topic_id), request, DeleteRecordsResponse)
        assert answer is not None
        assert only(only(answer.topics).partitions).error_code == ErrorCode.NONE

    async def _stop_later(self, client: Client, topic_id: bytes) -> None:
        node_id = await self._leader(client, topic_id)
        files = self.cluster.nodes[node_id].files
        files.on_stop = partial(self._stop, node_id)
        files.stop_at = files.operations + self.stop_at

    def _stop(self, node_id: int) -> None:
        self.was_stopped = True
        for each in self.node_ids if self._by_power else (node_id,):
            self._end_process(each)
            self.cluster.network.at(self.world.now + RESTART_SECONDS, self.cluster.start, each)

    async def _end(self, client: Client, topic_id: bytes) -> None:
        """Kill the leader at a moment at which its disk is as it is."""
        node_id = await self._leader(client, topic_id)
        self.cluster.network.at(self.world.now, self.cluster.kill, node_id)
        self.cluster.network.at(self.world.now + RESTART_SECONDS, self.cluster.start, node_id)
        await asyncio.sleep(2 * RESTART_SECONDS)

    async def _read(self, client: Client, topic_id: bytes) -> None:
        offset, end = 0, self.history.partitions[topic_id, 0].acknowledged_end
        while offset < end:
            after = await self.workload.read_once(client, (topic_id, 0), offset)
            if after == offset:
                await client.pause(0.3)
            offset = after


def stops(brokers: int, first: int, *, by_power: bool = False) -> Iterator[Life]:
    """Run lives with stops at every so many-th change of the disk, until one ends before its stop."""
    for stop_at in range(first, 1000, STEP):
        life = Life(brokers, stop_at, by_power=by_power)
        assert life.run() == [], f"stopped at change {stop_at}"
        yield life
        if not life.was_stopped:
            return
    raise AssertionError("it does not end")


@pytest.mark.crash
@pytest.mark.parametrize(
    ("brokers", "by_power", "first"),
    [(1, False, 1), (1, True, 2), (3, False, 3), (3, True, 4)],
    ids=["one broker is killed", "one broker loses power", "the leader of three is killed", "three lose power"],
)
def test_a_new_topic_inherits_nothing_whenever_its_broker_stops(*, brokers: int, by_power: bool, first: int) -> None:
    assert len(list(stops(brokers, first, by_power=by_power))) > 5

"""`cluster brokers` with the workers of a machine, in one process."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.metadata.keys import Keys
from odradek.broker.metadata.store.memory import InMemoryStore
from odradek.broker.metadata.store.store import Put
from odradek.broker.metadata.values import RUNNING, BrokerRegistration, Listener, encode
from odradek.broker.startup.surroundings import Worker
from tests.client.cli.commands import run, run_json


class Workers:
    """Brokers 1, 1001 and 2001, which are workers of one machine, and broker 2, which is none."""

    def __init__(self, store: InMemoryStore, brokers: list[Broker]) -> None:
        self.bootstrap = brokers[0].bootstrap
        self.ports = [broker.port for broker in brokers]
        self._metadata = brokers[0].services.metadata
        self._store = store

    async def register(self, node_id: int, port: int) -> None:
        """Register a broker that is elsewhere, and return when the first broker knows it."""
        listeners = [Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", port)]
        registration = BrokerRegistration(listeners, None, "incarnation", 0, "boot", RUNNING)
        result = await self._store.txn((), (Put(Keys("odradek").broker_id(node_id), encode(registration)),))
        await self._metadata.wait_for_revision(result.revision)


@pytest.fixture
async def workers(tmp_path: Path) -> AsyncIterator[Workers]:
    store = InMemoryStore()
    async with AsyncExitStack() as stack:
        brokers = []
        for node_id in (1, 2, 1001, 2001):
            is_worker = node_id != 2
            properties = {"node.id": str(node_id), "log.dirs": str(tmp_path / str(node_id))}
            if is_worker:
                properties |= {"num.workers": "3", "broker.rack": "a"}
            broker = Broker(properties, store=store, worker=Worker("machine", None) if is_worker else None)
            brokers.append(await stack.enter_async_context(broker))
        metadata = brokers[0].services.metadata
        while len(metadata.image.brokers) < len(brokers):
            await metadata.wait_for_revision(metadata.image.revision + 1)
        yield Workers(store, brokers)
    await store.close()


async def test_each_broker_says_which_worker_it_is(workers: Workers) -> None:
    at = ("--bootstrap-server", workers.bootstrap)
    ports = workers.ports

    rows = await run_json("cluster", "brokers", *at)
    out, err = await run("cluster", "brokers", *at)

    assert [(row["broker"], row["host"], row["port"], row["rack"]) for row in rows] == [
        (1, "127.0.0.1", ports[0], "a"),
        (2, "127.0.0.1", ports[1], None),
        (1001, "127.0.0.1", ports[2], "a"),
        (2001, "127.0.0.1", ports[3], "a"),
    ]
    assert [(row["worker"], row["workers"], row["error"]) for row in rows] == [
        (0, 3, None), (None, None, None), (1, 3, None), (2, 3, None),
    ]  # fmt: skip
    assert [line.split(maxsplit=4) for line in out] == [
        [b"BROKER", b"HOST", b"PORT", b"RACK", b"WORKER"],
        [b"1", b"127.0.0.1", b"%d" % ports[0], b"a", b"0 of 3"],
        [b"2", b"127.0.0.1", b"%d" % ports[1], b"-", b"-"],
        [b"1001", b"127.0.0.1", b"%d" % ports[2], b"a", b"1 of 3"],
        [b"2001", b"127.0.0.1", b"%d" % ports[3], b"a", b"2 of 3"],
    ]
    assert err == ""


async def test_brokers_that_do_not_answer_are_listed(workers: Workers) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = [each.getsockname()[1] for each in (silent, closed)]
        closed.close()
        await _list_beside(workers, *ports)


async def _list_beside(workers: Workers, silent: int, closed: int) -> None:
    """List the workers beside a broker at a port that accepts and is silent, and one at a port that refuses."""
    await workers.register(3, silent)
    await workers.register(4, closed)
    typed = ("cluster", "brokers", "--bootstrap-server", workers.bootstrap, "--timeout-ms", "300")

    rows = {row["broker"]: row for row in await run_json(*typed, status=1)}
    out, _ = await run(*typed, status=1)

    assert [row["worker"] for row in rows.values()] == [0, None, None, None, 1, 2]
    assert [node_id for node_id, row in rows.items() if row["error"] is not None] == [3, 4]
    assert rows[3] == {
        "broker": 3, "host": "127.0.0.1", "port": silent, "rack": None,
        "worker": None, "workers": None, "error": "no response within 300 ms",
    }  # fmt: skip
    lines = {int(line.split()[0]): line.split(maxsplit=4) for line in out[1:]}
    assert lines[3] == [b"3", b"127.0.0.1", b"%d" % silent, b"-", b"unknown (no response within 300 ms)"]
    assert lines[4][4] == f"unknown ({rows[4]['error']})".encode()
    assert lines[1001][4] == b"1 of 3"

"""The pages of a broker of a cluster while it waits for its metadata store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from tests.peers import etcd
from tests.peers.server import free_port
from tests.wire import Wire

WAITING = "not ready: the metadata store cannot be reached: "


async def page(broker: Broker, path: str) -> tuple[int, str]:
    """The status and the text of a page."""
    async with Wire("127.0.0.1", broker.metrics_port) as connection:
        connection.writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % path.encode())
        head, _, body = (await connection.reader.read()).partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


async def until(broker: Broker, status: int, text: str) -> None:
    """Wait until `/readyz` has this status, with a text that begins so."""
    async with asyncio.timeout(60):
        while True:
            if broker.metrics_port >= 0:
                found = await page(broker, "/readyz")
                if found[0] == status and found[1].startswith(text):
                    return
            await asyncio.sleep(0.02)


class Starting:
    """A broker whose `start` runs in a task."""

    def __init__(self, directory: Path, endpoint: str) -> None:
        properties = {"node.id": "1", "log.dirs": str(directory), "metrics.port": "0"}
        self.broker = Broker(properties | {"metadata.etcd.endpoints": endpoint})
        self.task = asyncio.get_running_loop().create_task(self.broker.start())

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.broker.stop()


@pytest.fixture
async def waiting(tmp_path: Path) -> AsyncIterator[Starting]:
    """A broker whose etcd is not there."""
    starting = Starting(tmp_path / "log", f"127.0.0.1:{free_port()}")
    yield starting
    await starting.end()


async def test_a_broker_that_waits_for_etcd_is_alive_and_not_ready_and_says_why(waiting: Starting) -> None:
    broker = waiting.broker
    await until(broker, 503, WAITING)

    assert not waiting.task.done()
    assert await page(broker, "/healthz") == (200, "ok\n")
    status, metrics = await page(broker, "/metrics")
    assert (status, "\nkafka_server_kafkaserver_brokerstate 2.0\n" in metrics) == (200, True)


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_a_broker_is_ready_as_soon_as_etcd_is_there(tmp_path: Path) -> None:
    members = etcd.prepare(tmp_path, 1)
    starting = Starting(tmp_path / "log", members.members[0].bootstrap)
    try:
        await until(starting.broker, 503, WAITING)
        await asyncio.to_thread(members.start)

        await starting.task

        assert await page(starting.broker, "/readyz") == (200, "ready\n")
        _, metrics = await page(starting.broker, "/metrics")
        assert "\nodradek_metadata_store_attempts_total " in metrics
        assert "\nodradek_metadata_store_attempts_total 0.0\n" not in metrics
        assert "\nodradek_metadata_store_timems_count 0.0\n" not in metrics
    finally:
        await starting.end()
        members.kill()

"""Fetches of one task through its client, without Spark."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from odradek.broker.testing.threaded import ThreadedBroker
from odradek.client import Producer
from odradek.client.network.connections import Purpose
from odradek.client.record import TopicPartition
from odradek.pipeline.blocking_client import BlockingClient
from odradek.pipeline.options.broker_options import Cluster
from odradek.pipeline.reading.fetch_client import FetchClient
from odradek.pipeline.reading.ranges import OffsetRange

RECORDS = 64


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    async def fill(bootstrap: str) -> None:
        async with Producer(bootstrap, linger_ms=0) as producer:
            for _ in range(RECORDS):
                await producer.send_and_wait("t", bytes(250_000))

    with ThreadedBroker({"log.dirs": str(tmp_path), "auto.create.topics.enable": "true"}) as broker:
        asyncio.run(fill(broker.bootstrap))
        yield broker.bootstrap


def test_a_response_that_arrived_while_the_task_worked_for_long_is_used(bootstrap: str) -> None:
    cluster = Cluster(bootstrap, {"request_timeout_ms": 2000}, 30_000)
    with closing(BlockingClient(cluster.client_config(), 30_000)) as client:
        fetches = FetchClient(client, cluster)
        partition = OffsetRange(TopicPartition("t", 0), 0, RECORDS)
        pulled = fetches.fetch(partition, isolation_level="read_committed", fetch_bytes=1_000_000)
        next(pulled)
        leader = client.cluster.leader("t", 0)
        assert leader is not None
        connection = client.cluster.established(leader, Purpose.FETCH)
        time.sleep(2.5)  # the loop of the client does not run, as while Spark processes the batches
        next(pulled)
        assert client.cluster.established(leader, Purpose.FETCH) is connection
        pulled.close()

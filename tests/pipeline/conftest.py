"""One Spark session for all tests of the pipeline, with Spark's own connector and ours, and servers of both kinds.

A session takes ten seconds to start, and its first jobs as long again. Tests share it and use different topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.peers import apache, connector, odradek, topics
from tests.peers.availability import unavailable
from tests.peers.java import FOR_SECONDS
from tests.peers.server import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVERS = {"odradek": odradek.prepare, "apache": apache.prepare}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session of two threads with `format("broker")`, `format("klog")` and `format("kafka")`."""
    from odradek.pipeline.spark.spark_session import RequirementMissingError, session

    work = tmp_path_factory.mktemp("spark")
    config = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": FOR_SECONDS,  # the second compiler doubles the processor time
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    try:
        started = session("tests", master="local[2]", jars=connector.jars().split(","), config=config)
    except RequirementMissingError as error:
        unavailable(str(error))
    started.sparkContext.setLogLevel("ERROR")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Server]]:
    """A function that returns the server of a kind, and starts it at the first call."""
    started: dict[str, Server] = {}

    def of_kind(kind: str) -> Server:
        if kind not in started:
            started[kind] = SERVERS[kind](tmp_path_factory.mktemp(kind)).start()
        return started[kind]

    yield of_kind
    for server in started.values():
        server.stop()
        assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture(params=["odradek", "apache"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of server in turn; a test that needs only one parametrizes `kind`."""
    named: str = request.param
    return named


@pytest.fixture
def bootstrap(kind: str, servers: Callable[[str], Server]) -> str:
    return servers(kind).bootstrap


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    return topics.name_for(request.node)


@pytest.fixture
def make_topic(bootstrap: str, topic_name: str) -> Callable[..., str]:
    return topics.maker(AdminClient({"bootstrap.servers": bootstrap}), topic_name)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")

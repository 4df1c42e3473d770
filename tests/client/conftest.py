"""A real broker for tests of the client: ours, and Apache Kafka in tests with `servers` or with `--server apache`."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.client import Admin, NewTopic
from tests.peers import apache, odradek
from tests.peers.server import Server

PROPERTIES = {
    "auto.create.topics.enable": "true",
    "num.partitions": "3",
    "log.retention.ms": "-1",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def apache_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    server = apache.prepare(tmp_path_factory.mktemp("apache"), PROPERTIES | authorizer)
    server.start()
    yield server
    server.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a broker against ours, against those of `servers(...)`, or against the one of `--server`."""
    fixture = next((name for name in ("bootstrap", "server") if name in metafunc.fixturenames), None)
    if fixture is None:
        return
    marker = metafunc.definition.get_closest_marker("servers")
    servers = (
        ["apache"] if metafunc.config.getoption("--server") == "apache" else marker.args if marker else ["odradek"]
    )
    needs = {"apache": [pytest.mark.interop, pytest.mark.java]}
    metafunc.parametrize(fixture, [pytest.param(name, marks=needs.get(name, ())) for name in servers], indirect=True)


@pytest.fixture
async def bootstrap(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """The address of a broker that automatically creates topics with three partitions."""
    if request.param == "apache":
        yield request.getfixturevalue("apache_server").bootstrap
    else:
        async with Broker(PROPERTIES) as broker:
            yield broker.bootstrap


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    """A broker process that the test may stop, kill and start. All tests share Apache's, which starts slowly."""
    if request.param == "apache":
        server = request.getfixturevalue("apache_server")
        yield server
        if server.process.poll() is not None:
            server.start()
    else:
        server = odradek.prepare(tmp_path, PROPERTIES).start()
        yield server
        server.kill()


@pytest.fixture
def topic() -> str:
    """The name of a topic that no other test uses."""
    return f"topic-{next(_numbers)}"


MakeTopic = Callable[..., Awaitable[str]]


@pytest.fixture
def make_topic(bootstrap: str, topic: str) -> MakeTopic:
    async def make(partitions: int = 1, **properties: Any) -> str:
        """Create the topic; `properties` with underscores for dots."""
        named = {name.replace("_", "."): str(value) for name, value in properties.items()}
        async with Admin(bootstrap) as admin:
            created = (await admin.create_topics([NewTopic(topic, partitions, configs=named)])).value(topic)
        assert created.partitions == partitions
        return topic

    return make

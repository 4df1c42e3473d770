"""A server process for the whole session, and separate topics for each test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from odradek.client import ScramUpsertion
from tests.peers import apache, odradek, secured_server, topics
from tests.peers.secured_server import USERS, SecuredServer
from tests.peers.server import Server

KINDS = {"odradek": odradek.prepare, "apache": apache.prepare}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.interop)


@pytest.fixture(scope="session")
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of server that the tests run against: `--server`."""
    chosen: str = request.config.getoption("--server")
    return chosen


@pytest.fixture(scope="session")
def server(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that tests share. It must end cleanly and must not print a traceback."""
    server = KINDS[kind](tmp_path_factory.mktemp("server"))
    server.start()
    yield server
    status = server.stop()
    assert "Traceback" not in server.printed(), server.printed()[-8000:]
    expected = 0 if kind == "odradek" else 143  # Java's way of saying that a SIGTERM ended it
    assert status == expected, f"exit status {status}\n{server.printed()[-4000:]}"


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An Apache Kafka for comparisons, independent of `--server`."""
    server = apache.prepare(tmp_path_factory.mktemp("reference")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session", params=["odradek", pytest.param("apache", marks=pytest.mark.java)])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    """A server of each kind with TLS, SASL and access rules, whose users can also authenticate by SCRAM."""
    secured = secured_server.prepare(request.param, tmp_path_factory.mktemp("secured"))
    secured.server.start()
    asyncio.run(_add_scram_users(secured))
    yield secured
    secured.server.stop()
    assert "Traceback" not in secured.server.printed(), secured.server.printed()[-8000:]


async def _add_scram_users(secured: SecuredServer) -> None:
    users = [
        ScramUpsertion(name, password, mechanism, 4096)
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
        for name, password in USERS.items()
    ]
    async with secured.admin() as admin:
        (await admin.alter_user_scram_credentials(users)).values_or_raise()


@pytest.fixture
def start_server(kind: str, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Start a server for one test: `start_server({"property": "value"})`. It is killed at the end if it still runs."""
    started: list[Server] = []

    def start(properties: Mapping[str, str] = {}) -> Server:
        server = KINDS[kind](tmp_path / f"server-{len(started)}", properties)
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.kill()
        assert "Traceback" not in server.printed(), server.printed()[-8000:]


@pytest.fixture
def bootstrap(server: Server) -> str:
    return server.bootstrap


@pytest.fixture(scope="module")
def admin(server: Server) -> AdminClient:
    """A client for one file: its threads would open descriptors beside the tests of other packages."""
    return AdminClient({"bootstrap.servers": server.bootstrap})


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    return topics.name_for(request.node)


@pytest.fixture
def make_topic(admin: AdminClient, topic_name: str) -> Callable[..., str]:
    return topics.maker(admin, topic_name)


@pytest.fixture
def topic(make_topic: Callable[..., str]) -> str:
    """A topic of one partition with default properties."""
    return make_topic()

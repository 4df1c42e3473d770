"""The broker under test: ours, in process; with `--server apache` a real Kafka, to verify the tests.

Tests that look into the broker, or start one of their own, are skipped there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from odradek.broker.broker import Broker
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest
from odradek.protocol.messages.metadata import MetadataRequest
from tests.handlers.group_members import GroupMember, find_coordinator, new_group_id
from tests.handlers.requests import create
from tests.handlers.secured import secured_broker
from tests.peers import apache
from tests.wire import Wire

_FEW_LOGS = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
"""As many logs as needed, not 50 for each coordinator."""


class Elsewhere:
    """A broker in another process."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"{name} is not to be seen from outside")


@pytest.fixture(scope="session")
def apache_port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int | None]:
    """The port of a running Apache Kafka, if the tests are to run against one."""
    if request.config.getoption("--server") != "apache":
        yield None
        return
    directory: Path = tmp_path_factory.mktemp("apache")
    server = apache.prepare(directory, {"auto.create.topics.enable": "true"}).start()
    yield server.port
    server.stop()


@pytest.fixture
def only_here(apache_port: int | None) -> None:
    """Skip a test of a difference from Apache Kafka on purpose."""
    if apache_port is not None:
        pytest.skip("differs from Apache Kafka")


@pytest.fixture
async def broker(apache_port: int | None) -> AsyncIterator[Any]:
    if apache_port is None:
        async with Broker(_FEW_LOGS) as started:
            yield started
    else:
        yield Elsewhere(apache_port)
        await _delete_all_topics(apache_port)


@pytest.fixture
async def secured() -> AsyncIterator[Broker]:
    """A broker with access rules; the client `admin` may do everything."""
    async with secured_broker() as broker:
        yield broker


@pytest.fixture
async def alice(secured: Broker, admin: Wire) -> AsyncIterator[Wire]:
    """A client of the secured broker with no rights, after what the module's `admin` has prepared."""
    async with Wire("127.0.0.1", secured.port, "alice") as connected:
        yield connected


@pytest.fixture
async def wire(broker: Broker) -> AsyncIterator[Wire]:
    async with Wire("127.0.0.1", broker.port) as connected:
        yield connected


@pytest.fixture
async def only_member(wire: Wire) -> GroupMember:
    """The only member of a stable group of the classic protocol."""
    group_id = new_group_id()
    await find_coordinator(wire, group_id)
    member = GroupMember(wire, group_id, "instance")
    await member.become_only_member()
    return member


@pytest.fixture
async def committer(wire: Wire) -> GroupMember:
    """A client outside a new group with a coordinator; topic `t` exists."""
    group_id = new_group_id()
    await find_coordinator(wire, group_id)
    await create(wire, "t", 3)
    return GroupMember(wire, group_id)


async def _delete_all_topics(port: int) -> None:
    async with Wire("127.0.0.1", port) as wire:
        while True:
            topics = (await wire.ask(MetadataRequest(None), 9)).topics
            names = [topic.name for topic in topics if not topic.is_internal]
            if not names:
                return
            await wire.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=5000), 4)
